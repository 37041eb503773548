// Calls of tools, from a model that is known to write them.
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { Cluster } from './cluster.mjs';
import { makeParrot } from './parrot.mjs';

let cluster, openai, model;
before(async () => {
  model = makeParrot();
  cluster = await Cluster.up({ model });
  openai = cluster.client();
});
after(async () => {
  const how = await cluster.down();
  rmSync(model, { recursive: true });
  assert.deepEqual(how, { code: 0, signal: null });
});

const weather = {
  type: 'function',
  function: {
    name: 'weather',
    description: 'The weather of a city',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
};
const messages = [{ role: 'user', content: 'How warm is it?' }];
const ask = async (more) => ({
  model: (await openai.models.list()).data[0].id,
  messages, temperature: 0, max_tokens: 32, tools: [weather], ...more,
});
const calls = (list) => list.map((c) => [c.type, c.function.name, JSON.parse(c.function.arguments)]);
const expected = [
  ['function', 'weather', { city: 'Oslo' }],
  ['function', 'weather', { city: 'Bergen' }],
];

test('calls come as tool_calls, and words as content', async () => {
  const { choices: [choice] } = await openai.chat.completions.create(await ask());
  assert.equal(choice.finish_reason, 'tool_calls');
  assert.equal(choice.message.content, 'Let me look.');
  assert.deepEqual(calls(choice.message.tool_calls), expected);
  const ids = choice.message.tool_calls.map((c) => c.id);
  for (const id of ids) assert.match(id, /^call_[a-z0-9]{24}$/);
  assert.notEqual(ids[0], ids[1]);
});

test('streamed ones are numbered, and the client puts them together', async () => {
  const stream = await openai.chat.completions.create(await ask({ stream: true }));
  let text = '', reason = null;
  const deltas = [];
  for await (const { choices: [c] } of stream) {
    text += c.delta.content ?? '';
    deltas.push(...(c.delta.tool_calls ?? []));
    reason = c.finish_reason ?? reason;
  }
  assert.deepEqual([text, reason], ['Let me look.', 'tool_calls']);
  assert.deepEqual(deltas.map((d) => d.index), [0, 1]);
  assert.deepEqual(calls(deltas), expected);
  const collected = await openai.chat.completions.stream(await ask()).finalChatCompletion();
  assert.deepEqual(calls(collected.choices[0].message.tool_calls), expected);
});

test('the client runs tools and comes back with what they said', async () => {
  for (const stream of [false, true]) {
    const asked = [];
    const tool = {
      type: 'function',
      function: {
        ...weather.function, parse: JSON.parse,
        function: ({ city }) => { asked.push(city); return '21 degrees'; },
      },
    };
    const runner = openai.chat.completions.runTools(await ask({ stream, tools: [tool] }));
    assert.equal(await runner.finalContent(), 'It is 21 degrees in both.');
    assert.deepEqual(asked, ['Oslo', 'Bergen']);
  }
});

test('a malformed call is content, to the last byte', async () => {
  const broken = await ask({ messages: [{ role: 'user', content: 'break' }] });
  const { choices: [c] } = await openai.chat.completions.create(broken);
  assert.equal(c.message.content, ' <tool_call>{"name": weather or so}');
  assert.deepEqual([c.message.tool_calls, c.finish_reason], [undefined, 'stop']);
  const again = await openai.chat.completions.stream(broken).finalChatCompletion();
  assert.equal(again.choices[0].message.content, c.message.content);
});

test('without tools, or with tool_choice none, nothing is read as a call', async () => {
  const none = await openai.chat.completions.create(await ask({ tool_choice: 'none' }));
  assert.equal(none.choices[0].finish_reason, 'length');
  const broken = { messages: [{ role: 'user', content: 'break' }], tools: undefined };
  const { choices: [c] } = await openai.chat.completions.create(await ask(broken));
  assert.equal(c.message.content, ' <tool_call>{"name": weather or so}');
});

test('a call that is required comes, of the tool that is named, and nothing else', async () => {
  const now = { type: 'function', function: { name: 'now', parameters: { type: 'object', properties: {} } } };
  const forced = (tool_choice, more) => ask({
    tools: [weather, now], tool_choice, parallel_tool_calls: false, max_tokens: 100, ...more,
  });
  const named = { type: 'function', function: { name: 'now' } };
  const { choices: [c] } = await openai.chat.completions.create(await forced(named));
  assert.deepEqual([c.message.content, c.finish_reason], [null, 'tool_calls']);
  assert.deepEqual(calls(c.message.tool_calls), [['function', 'now', {}]]);
  const again = await openai.chat.completions.stream(await forced(named)).finalChatCompletion();
  assert.deepEqual(calls(again.choices[0].message.tool_calls), [['function', 'now', {}]]);
  const any = await openai.chat.completions.create(await forced('required', { tools: [now] }));
  assert.deepEqual(calls(any.choices[0].message.tool_calls), [['function', 'now', {}]]);
  for (const wrong of [await forced(named, { tools: [weather] }), await forced('required', { tools: [] })])
    await assert.rejects(openai.chat.completions.create(wrong), { status: 400, param: 'tool_choice' });
});

test('an answer of a form is no call, whatever it spells', async () => {
  const text = '<tool_call>{"name": "weather", "arguments": {}}</tool_call>';
  const { choices: [c] } = await openai.chat.completions.create(
    await ask({ structured_outputs: { choice: [text] }, max_tokens: 100 }));
  assert.deepEqual([c.message.content, c.finish_reason], [text, 'stop']);
});

test('a call that max_tokens cuts is content', async () => {
  const { choices: [c] } = await openai.chat.completions.create(await ask({ max_tokens: 3 }));
  assert.deepEqual([c.message.content, c.finish_reason], ['Let me look.\n<tool_call>', 'length']);
  assert.equal(c.message.tool_calls, undefined);
});

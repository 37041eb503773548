// What the official client asks of an API, and what it gets, with a model whose answers are noise.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Cluster, gather, until } from './cluster.mjs';

let cluster, openai;
before(async () => {
  cluster = await Cluster.up();
  openai = cluster.client();
});
after(async () => assert.deepEqual(await cluster.down(), { code: 0, signal: null }));

const messages = [{ role: 'user', content: 'Say something.' }];
const greedy = { model: 'tiny', messages, temperature: 0, max_tokens: 24 };
const chat = (more) => openai.chat.completions.create({ ...greedy, ...more });
const complete = (more) => openai.completions.create(
  { model: 'tiny', prompt: 'Once upon', temperature: 0, max_tokens: 24, ...more });
const words = (answer) => answer.choices.map((c) => c.message?.content ?? c.text);

test('models are listed', async () => {
  const all = [];
  for await (const model of openai.models.list()) all.push(model);
  assert.deepEqual(all.map((m) => [m.id, m.object]), [['tiny', 'model']]);
});

test('a chat is answered', async () => {
  const answer = await chat();
  assert.equal(answer.object, 'chat.completion');
  assert.match(answer.id, /^chatcmpl-[0-9a-f]{32}$/);
  assert.equal(answer.model, 'tiny');
  assert.ok(Math.abs(answer.created - Date.now() / 1000) < 60);
  const [choice] = answer.choices;
  assert.equal(choice.message.role, 'assistant');
  assert.ok(choice.message.content.length > 0);
  assert.ok(['length', 'stop'].includes(choice.finish_reason));
  const { prompt_tokens, completion_tokens, total_tokens } = answer.usage;
  assert.ok(prompt_tokens > 0 && completion_tokens > 0);
  assert.equal(prompt_tokens + completion_tokens, total_tokens);
});

test('content may come in parts, or not at all', async () => {
  const ask = async (...turns) => words(await chat({ messages: turns }))[0];
  const user = (content) => ({ role: 'user', content });
  const part = (text) => ({ type: 'text', text });
  assert.equal(await ask(user([part('Say'), part('something.')])), await ask(user('Say\nsomething.')));
  const call = { id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } };
  const result = { role: 'tool', tool_call_id: 'a', content: [part('7')] };
  const assistant = { role: 'assistant', tool_calls: [call] };
  const empty = await ask(user('Hi'), { ...assistant, content: '' }, result);
  assert.equal(await ask(user('Hi'), { ...assistant, content: null }, result), empty);
  assert.equal(await ask(user('Hi'), assistant, result), empty);
  await assert.rejects(ask(user([{ type: 'image_url', image_url: { url: 'data:,' } }])),
    { status: 400, param: 'messages[0].content[0]' });
});

test('a streamed chat says the same', async () => {
  const whole = await chat();
  const stream = await chat({ stream: true, stream_options: { include_usage: true } });
  const all = await gather(stream);
  assert.deepEqual(all.text, words(whole));
  assert.equal(all.reason[0], whole.choices[0].finish_reason);
  assert.deepEqual(all.usage, whole.usage);
});

// Tokens that are ready together share a chunk, so that one short answer may well come whole.
test('a stream comes in pieces', async () => {
  const long = { stream: true, max_tokens: 400 };
  await until(async () => (await gather(await chat(long))).chunks > 4, 'a stream in pieces');
});

test('without include_usage a stream says no usage', async () => {
  assert.equal((await gather(await chat({ stream: true }))).usage, null);
});

test('the client\'s own stream collector agrees', async () => {
  const answer = await openai.chat.completions.stream(greedy).finalChatCompletion();
  assert.deepEqual(words(answer), words(await chat()));
});

test('a completion is answered, whole and streamed', async () => {
  const whole = await complete();
  assert.equal(whole.object, 'text_completion');
  const all = await gather(await complete({ stream: true, stream_options: { include_usage: true } }));
  assert.deepEqual(all.text, words(whole));
  assert.deepEqual(all.usage, whole.usage);
  const echoed = await complete({ echo: true });
  assert.equal(echoed.choices[0].text, `Once upon${whole.choices[0].text}`);
});

test('a completion takes several prompts, and ids', async () => {
  const both = await complete({ prompt: ['Once upon', 'The'] });
  assert.deepEqual(both.choices.map((c) => c.index), [0, 1]);
  const [one] = words(await complete()), [other] = words(await complete({ prompt: 'The' }));
  assert.deepEqual(words(both), [one, other]);
  const of_ids = await complete({ prompt: [[40, 41], [42]] });
  assert.equal(of_ids.choices.length, 2);
  assert.deepEqual(words(await complete({ prompt: [42] })), words(of_ids).slice(1));
});

test('n gives so many answers', async () => {
  const whole = await chat({ n: 3, temperature: 1, seed: 7 });
  assert.deepEqual(whole.choices.map((c) => c.index), [0, 1, 2]);
  assert.ok(new Set(words(whole)).size > 1, 'each is sampled for itself');
  const all = await gather(await chat({ n: 3, temperature: 1, seed: 7, stream: true }));
  assert.deepEqual(all.text, words(whole));
});

test('a seed gives the same answer again', async () => {
  const sampled = (seed) => chat({ temperature: 1, seed }).then(words);
  const [one, again, other] = [await sampled(1), await sampled(1), await sampled(2)];
  assert.deepEqual(one, again);
  assert.notDeepEqual(one, other);
  const [free, too] = [words(await chat({ temperature: 1 })), words(await chat({ temperature: 1 }))];
  assert.notDeepEqual(free, too);
});

test('logprobs stand beside the tokens of a chat', async () => {
  const whole = await chat({ logprobs: true, top_logprobs: 3, max_tokens: 8 });
  const tokens = whole.choices[0].logprobs.content;
  assert.equal(tokens.length, whole.usage.completion_tokens);
  for (const t of tokens) {
    assert.ok(t.logprob <= 0);
    assert.equal(t.top_logprobs.length, 3);
    assert.equal(t.top_logprobs[0].logprob, t.logprob, 'the greedy one is the likeliest');
    assert.deepEqual(t.top_logprobs[0].bytes, t.bytes);
    assert.ok(t.top_logprobs[0].logprob >= t.top_logprobs[2].logprob);
  }
  const said = Buffer.from(tokens.flatMap((t) => t.bytes)).toString();
  assert.ok(said.startsWith(words(whole)[0].replace(/\uFFFD.*/s, '')));
  const all = await gather(
    await chat({ logprobs: true, top_logprobs: 3, max_tokens: 8, stream: true }));
  assert.deepEqual(all.tokens[0], tokens);
  const bare = await chat({ logprobs: true, max_tokens: 2 });
  assert.deepEqual(bare.choices[0].logprobs.content[0].top_logprobs, []);
  assert.equal((await chat()).choices[0].logprobs, null);
});

test('an echoed prompt is scored as an answer is', async () => {
  const scored = async (prompt, max_tokens, more) => (await complete(
    { prompt, echo: true, logprobs: 1, temperature: 0, max_tokens, ...more })).choices[0];
  const first = await scored('The answer is', 4);
  const l = first.logprobs;
  assert.equal(l.tokens.join(''), first.text);
  assert.deepEqual([l.token_logprobs[0], l.top_logprobs[0], l.text_offset[0]], [null, null, 0]);
  assert.ok(l.token_logprobs.slice(1).every((p) => p <= 0));
  const plain = (await complete({ prompt: 'The answer is', logprobs: 1, temperature: 0, max_tokens: 4 })).choices[0].logprobs;
  assert.deepEqual(l.token_logprobs.slice(-4), plain.token_logprobs);
  const longer = (await scored('The answer is that all', 1)).logprobs;
  const prompt = l.tokens.length - 4;
  assert.ok(longer.tokens.length > prompt + 1);
  assert.deepEqual(longer.tokens.slice(0, prompt), l.tokens.slice(0, prompt));
  assert.deepEqual(longer.token_logprobs.slice(0, prompt), l.token_logprobs.slice(0, prompt));
  const stream = await complete({ prompt: 'The answer is', echo: true, logprobs: 1, temperature: 0, max_tokens: 4, stream: true });
  const streamed = [];
  for await (const { choices: [c] } of stream) streamed.push(...(c?.logprobs?.token_logprobs ?? []));
  assert.deepEqual(streamed, l.token_logprobs);
});

test('logprobs of a completion have their older form', async () => {
  const answer = await complete({ logprobs: 2, max_tokens: 5 });
  const l = answer.choices[0].logprobs;
  assert.equal(l.tokens.length, 5);
  assert.equal(l.token_logprobs.length, 5);
  assert.equal(l.top_logprobs.length, 5);
  assert.equal(l.text_offset[0], 0);
  for (const top of l.top_logprobs) assert.ok(Object.keys(top).length >= 1);
});

test('a stop text ends the answer before it', async () => {
  const [text] = words(await complete({ max_tokens: 40 }));
  const stop = [...text.slice(4, 12)].slice(0, 4).join('');
  const cut = text.slice(0, text.indexOf(stop));
  for (const form of [stop, [stop], ['\u2603\u2603', stop]]) {
    const answer = await complete({ max_tokens: 40, stop: form });
    assert.deepEqual([words(answer)[0], answer.choices[0].finish_reason], [cut, 'stop']);
    const all = await gather(await complete({ max_tokens: 40, stop: form, stream: true }));
    assert.deepEqual([all.text[0], all.reason[0]], [cut, 'stop']);
  }
});

test('a bias of 100 forces a token, one of -100 forbids it', async () => {
  const forced = await complete({ logit_bias: { 36: 100 }, max_tokens: 5 });
  assert.equal(words(forced)[0], 'EEEEE');
  const [first] = (await complete({ logprobs: 0, max_tokens: 1 })).choices[0].logprobs.tokens;
  const without = await complete({ logit_bias: { 36: 100, 37: -100 }, max_tokens: 1 });
  assert.equal(words(without)[0], 'E');
  assert.notEqual(first, 'E');
});

test('penalties change what is said, within bounds', async () => {
  // Capital letters alone can come; penalties decide how many different ones do.
  const letters = Object.fromEntries(Array.from({ length: 26 }, (_, i) => [32 + i, 100]));
  const said = async (more) =>
    words(await complete({ logit_bias: letters, max_tokens: 40, ...more }))[0];
  const plain = await said({});
  assert.match(plain, /^[A-Z]{40}$/);
  for (const name of ['presence_penalty', 'frequency_penalty']) {
    assert.equal(await said({ [name]: 0 }), plain);
    const [many, few] = [await said({ [name]: 2 }), await said({ [name]: -2 })];
    assert.ok(new Set(many).size > new Set(few).size, `${name}: ${many} ${few}`);
  }
});

test('max_tokens and max_completion_tokens end the answer', async () => {
  for (const name of ['max_tokens', 'max_completion_tokens']) {
    const { max_tokens, ...rest } = greedy;
    const answer = await openai.chat.completions.create(
      { ...rest, logit_bias: { 36: 100 }, [name]: 3 });
    assert.equal(answer.usage.completion_tokens, 3);
    assert.equal(answer.choices[0].finish_reason, 'length');
    assert.deepEqual(words(answer), ['EEE']);
  }
});

test('an answer that the model ends has reason stop', async () => {
  const answer = await chat({ logit_bias: { 507: 100 } });
  assert.deepEqual([words(answer)[0], answer.choices[0].finish_reason], ['', 'stop']);
});

const tools = [{
  type: 'function',
  function: { name: 'weather', parameters: { type: 'object', properties: {} } },
}];

test('tools are taken, also by a model that knows none', async () => {
  const plain = await chat();
  for (const tool_choice of [undefined, 'auto', 'none'])
    assert.deepEqual(words(await chat({ tools, tool_choice })), words(plain));
});

test('response_format text is the default', async () => {
  assert.deepEqual(words(await chat({ response_format: { type: 'text' } })), words(await chat()));
});

test('messages of all roles and parts are taken', async () => {
  await chat({
    messages: [{ role: 'system', content: 'Be brief.' }, { role: 'user', content: 'Hi', name: 'a' },
      { role: 'assistant', content: 'Hello' }, { role: 'user', content: '\u{1F600} ok?' }],
  });
});

test('labels are taken in the lab', async () => {
  await chat({ user: 'me', metadata: { a: 'b' }, service_tier: 'auto', store: false,
    safety_identifier: 'x', prompt_cache_key: 'y' });
});

test('an answer says by which id its request is traced', async () => {
  const ids = [await chat(), await complete({ prompt: 'Hi' })].map((a) => a._request_id);
  for (const id of ids) assert.match(id, /^[0-9a-f]{16}$/);
  assert.notEqual(ids[0], ids[1]);
});

test('what vLLM\'s clients send beside is taken', async () => {
  const long = await complete({ prompt: 'Hi', max_tokens: 6, min_tokens: 6, skip_special_tokens: false });
  assert.equal(long.usage.completion_tokens, 6);
});

test('many clients at once each get their own answer', async () => {
  const prompts = Array.from({ length: 24 }, (_, i) => `Number ${i}:`);
  const alone = [];
  for (const prompt of prompts) alone.push(words(await complete({ prompt }))[0]);
  const together = await Promise.all(prompts.map((prompt, i) => i % 2
    ? complete({ prompt }).then((a) => words(a)[0])
    : complete({ prompt, stream: true }).then(gather).then((all) => all.text[0])));
  assert.deepEqual(together, alone);
});

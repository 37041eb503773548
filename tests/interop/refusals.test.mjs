// What is wrong with a request comes back as the official client's own error classes.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import OpenAI from 'openai';
import { Cluster, lethe } from './cluster.mjs';

let cluster, openai;
const keys = ['first-key', 'second-key'];
before(async () => {
  cluster = await Cluster.up({ keys: ['# of the tests', '', `${keys[0]} \t`, `  ${keys[1]}\r`] });
  openai = cluster.client({ apiKey: keys[1] });
});
after(async () => assert.deepEqual(await cluster.down(), { code: 0, signal: null }));

const messages = [{ role: 'user', content: 'Hi' }];
const chat = (more) =>
  openai.chat.completions.create({ model: 'tiny', messages, max_tokens: 2, ...more });
const complete = (more) =>
  openai.completions.create({ model: 'tiny', prompt: 'Hi', max_tokens: 2, ...more });

/// The error, checked for what all of them have.
async function refused(asked, type, wanted = {}) {
  const error = await asked.then(() => assert.fail('it was taken'), (e) => e);
  assert.ok(error instanceof type, `${error}`);
  assert.ok(error.message.length > 10);
  for (const [name, value] of Object.entries(wanted)) assert.equal(error[name], value, name);
  return error;
}
const bad = (asked, param) => refused(asked, OpenAI.BadRequestError, { param, status: 400 });

test('either key opens, another does not', async () => {
  for (const apiKey of keys) {
    const client = cluster.client({ apiKey });
    assert.equal((await client.models.list()).data.length, 1);
    await client.chat.completions.create({ model: 'tiny', messages, max_tokens: 1 });
  }
  for (const apiKey of ['third-key', 'first-ke', 'first-key2', 'first-key\tx']) {
    const client = cluster.client({ apiKey });
    const wanted = { status: 401, code: 'invalid_api_key' };
    await refused(client.models.list(), OpenAI.AuthenticationError, wanted);
    await refused(client.chat.completions.create({ model: 'tiny', messages }),
      OpenAI.AuthenticationError, wanted);
  }
  const none = await fetch(`${cluster.api}/v1/models`);
  assert.equal(none.status, 401);
  assert.equal(none.headers.get('www-authenticate'), 'Bearer');
});

test('the key follows its scheme, whose case is free', async () => {
  const status = async (authorization) =>
    (await fetch(`${cluster.api}/v1/models`, { headers: { authorization } })).status;
  for (const scheme of ['Bearer ', 'bearer ', 'BEARER ', 'Bearer   '])
    assert.equal(await status(scheme + keys[0]), 200, scheme);
  for (const wrong of [keys[0], `Basic ${keys[0]}`, `Bearer${keys[0]}`, 'Bearer', 'Bearer ',
    'Bearer # of the tests', '# of the tests', `Bearer ${keys[0]} ${keys[0]}`])
    assert.equal(await status(wrong), 401, wrong);
});

test('the model is served by its name, another is not found', async () => {
  const model = await openai.models.retrieve('tiny');
  assert.deepEqual(model, (await openai.models.list()).data[0]);
  const headers = { authorization: `Bearer ${keys[0]}` };
  const named = async (name) => (await fetch(`${cluster.api}/v1/models/${name}`, { headers })).status;
  assert.equal(await named('t%69ny'), 200);
  for (const other of ['', 'tiny/', 'tiny%', 'tiny%zz', 't%69', 'tiny%2'])
    assert.equal(await named(other), 404, other);
  const wanted = { status: 404, code: 'model_not_found', param: 'model' };
  for (const other of ['other', 'tin', 'tiny2', 'a/b'])
    await refused(openai.models.retrieve(other), OpenAI.NotFoundError, wanted);
});

test('an unknown model or path is not found', async () => {
  const wanted = { status: 404, code: 'model_not_found', param: 'model' };
  await refused(chat({ model: 'other' }), OpenAI.NotFoundError, wanted);
  await refused(complete({ model: 'other' }), OpenAI.NotFoundError, wanted);
  await refused(chat({ model: 'other', stream: true }), OpenAI.NotFoundError, wanted);
  await refused(openai.embeddings.create({ model: 'tiny', input: 'x' }), OpenAI.NotFoundError);
});

test('wrong types and ranges name their parameter', async () => {
  const wrong = {
    model: [7, '', null], messages: ['hi', [], {}, 7, null], temperature: ['hot', -1, 101],
    top_p: ['x', -0.1, 1.5], n: [0, -1, 1.5, '2', 129], max_tokens: [0, -1, 1.5, 'x'],
    max_completion_tokens: [0, 'x'], stop: [7, [7], '', {}], stream: ['yes', 1],
    seed: ['x', 1.5], presence_penalty: [-2.01, 2.01, 'x'], frequency_penalty: [-2.01, 2.01, 'x'],
    logit_bias: [[], { x: 1 }, { 3: 'x' }, { 99999999: 1 }, { 3: 1e3 }], logprobs: ['x', 1],
    top_logprobs: [-1, 129, 'x'], tools: ['x', {}], tool_choice: ['some', 7],
    response_format: ['x', { type: 7 }],
  };
  for (const [param, values] of Object.entries(wrong))
    for (const value of values)
      await bad(chat({ [param]: value }), param).catch((e) => {
        e.message = `${param} = ${JSON.stringify(value)}: ${e.message}`;
        throw e;
      });
  await bad(chat({ messages: [{ content: 'Hi' }] }), 'messages[0]');
  await bad(chat({ response_format: { type: 'xml' } }), 'response_format.type');
  await bad(chat({ nonsense: 1 }), 'nonsense');
  await bad(chat({ top_logprobs: 2 }), 'top_logprobs');
  await bad(chat({ stream_options: { include_usage: true } }), 'stream_options');
  await bad(complete({ prompt: { a: 1 } }), 'prompt');
  await bad(complete({ prompt: [-1] }), 'prompt');
  await bad(complete({ prompt: [99999] }), 'prompt');
  await bad(complete({ best_of: 2 }), 'best_of');
});

test('a missing parameter is named', async () => {
  await bad(openai.chat.completions.create({ messages }), 'model');
  await bad(openai.chat.completions.create({ model: 'tiny' }), 'messages');
  await bad(openai.completions.create({ model: 'tiny' }), 'prompt');
});

test('what does not fit the context is told so', async () => {
  const wanted = { status: 400, code: 'context_length_exceeded' };
  const long = 'word '.repeat(2000);
  await refused(complete({ prompt: long }), OpenAI.BadRequestError, { ...wanted, param: 'prompt' });
  await refused(chat({ messages: [{ role: 'user', content: long }] }), OpenAI.BadRequestError,
    { ...wanted, param: 'messages' });
  await refused(complete({ max_tokens: 512 }), OpenAI.BadRequestError, wanted);
});

test('a body that is no JSON is a bad request', async () => {
  const post = (body) => fetch(`${cluster.api}/v1/chat/completions`, {
    method: 'POST', body,
    headers: { authorization: `Bearer ${keys[0]}`, 'content-type': 'application/json' },
  });
  for (const body of ['', '{', '[]', '7', '{"model": "tiny",}', 'x'.repeat(1000), '\xff']) {
    const answer = await post(body);
    assert.equal(answer.status, 400, body.slice(0, 20));
    const { error } = await answer.json();
    assert.equal(error.type, 'invalid_request_error');
  }
});

test('errors never hold content', async () => {
  const secret = 'sesame-open';
  for (const more of [{ messages: [{ role: secret }, { content: secret }] }, { tool_choice: secret },
    { [`${secret}!`]: 1 }, { model: secret }, { stop: [secret, 7] }]) {
    const error = await refused(chat(more), OpenAI.APIError);
    assert.ok(!error.message.includes(secret), error.message);
  }
});

test('other methods are refused', async () => {
  const headers = { authorization: `Bearer ${keys[0]}` };
  assert.equal((await fetch(`${cluster.api}/v1/chat/completions`, { headers })).status, 405);
  const post = { method: 'POST', headers, body: '{}' };
  assert.equal((await fetch(`${cluster.api}/v1/models`, post)).status, 405);
});

test('only the lab has a plain interface', () => {
  const file = join(cluster.folder, 'strict.toml');
  const write = (profile, api) => writeFileSync(file,
    `profile = "${profile}"\n[model]\npath = "${cluster.model}"\n[listen]\napi = "${api}"\n`);
  write('lab', '127.0.0.1:0');
  assert.equal(lethe('config', 'check', file).status, 0);
  for (const [profile, api] of [['strict', '127.0.0.1:0'], ['session', '127.0.0.1:0'],
    ['lab', '0.0.0.0:0']]) {
    write(profile, api);
    for (const command of [['config', 'check'], ['up']]) {
      const ran = lethe(...command, file);
      assert.equal(ran.status, 1, `${command} ${profile} ${api}`);
      assert.match(ran.stderr, /listen\.api/);
    }
  }
});

// Clients that leave, queues that are full, clusters that go down.
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import OpenAI from 'openai';
import { Cluster, gather, until } from './cluster.mjs';
import { makeParrot } from './parrot.mjs';

// Long enough that an answer is never over by itself while a test looks.
const context = 65536;
let model, name;
before(() => { model = makeParrot({ context }); name = model.split('/').at(-1); });
after(() => rmSync(model, { recursive: true }));

const messages = [{ role: 'user', content: 'Go on' }];
const asked = (tokens, more) => ({ model: name, messages, temperature: 0, max_tokens: tokens, ...more });
const go = (client, tokens, more, options) =>
  client.chat.completions.create(asked(tokens, more), options);
const words = (n) => Array.from({ length: n }, (_, i) => i % 2 ? ' and' : ' on').join('');


test('leaving a stream cancels its request', async () => {
  const cluster = await Cluster.up({ model });
  const openai = cluster.client();
  const stream = await go(openai, 60000, { stream: true });
  for await (const chunk of stream) if (chunk.choices[0].delta.content) break; // breaking aborts
  const other = new AbortController();
  const second = await go(openai, 60000, { stream: true }, { signal: other.signal });
  const reading = gather(second);
  await cluster.running(1);
  other.abort();
  await reading.catch(() => {});
  const third = new AbortController();
  const whole = go(openai, 60000, {}, { signal: third.signal });
  await cluster.running(1);
  third.abort();
  await assert.rejects(whole, OpenAI.APIUserAbortError);
  await cluster.running(0);
  const ended = 'lethe:request_success_total{finished_reason="cancelled"}';
  await until(async () => await cluster.number(ended) === 3, 'three cancelled');
  assert.equal(await cluster.number('lethe:kv_cache_usage_perc'), 0);
  assert.deepEqual((await go(openai, 4)).choices[0].message.content, words(4));
  assert.deepEqual(await cluster.down(), { code: 0, signal: null });
});

test('a full engine says when to come back, and the client does', async () => {
  const cluster = await Cluster.up({ model, toml: '[batching]\nqueue = 0\nrunning = 1' });
  const openai = cluster.client();
  const hold = new AbortController();
  const stream = await go(openai, 60000, { stream: true }, { signal: hold.signal });
  const held = gather(stream).catch(() => {});
  await cluster.running(1);
  for (const more of [{}, { stream: true }]) {
    const error = await go(openai, 4, more).then(() => assert.fail('it was taken'), (e) => e);
    assert.ok(error instanceof OpenAI.RateLimitError, `${error}`);
    assert.equal(error.code, 'cluster_full');
    assert.equal(error.headers.get('retry-after'), '1');
  }
  const patient = go(cluster.client({ maxRetries: 5 }), 4);
  await sleep(300);
  hold.abort();
  await held;
  assert.equal((await patient).choices[0].message.content, words(4));
  assert.ok(await cluster.number('lethe:requests_turned_away_total') >= 3);
  assert.deepEqual(await cluster.down(), { code: 0, signal: null });
});

test('a cluster that leaves finishes what runs and takes no more', async () => {
  const cluster = await Cluster.up({ model });
  const openai = cluster.client();
  const tokens = 6000;
  const running = [];
  for (let i = 0; i < 3; ++i) running.push(gather(await go(openai, tokens, { stream: true })));
  const whole = go(openai, tokens);
  await cluster.running(4);
  cluster.child.kill('SIGTERM');
  await until(async () => (await fetch(`${cluster.metrics}/readyz`)).status === 503, 'leaving');
  assert.equal((await fetch(`${cluster.metrics}/livez`)).status, 200);
  const error = await go(openai, 4).then(() => assert.fail('it was taken'), (e) => e);
  assert.ok(error instanceof OpenAI.InternalServerError, `${error}`);
  assert.deepEqual([error.status, error.code], [503, 'cluster_leaving']);
  assert.ok(error.headers.get('retry-after'));
  for (const all of await Promise.all(running)) {
    assert.equal(all.text[0], words(tokens));
    assert.equal(all.reason[0], 'length');
  }
  assert.equal((await whole).choices[0].message.content, words(tokens));
  assert.deepEqual(await cluster.gone(), { code: 0, signal: null });
  await cluster.down();
});

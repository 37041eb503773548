// The official client, unmodified and with its retries on, through `lethe proxy`.
import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import OpenAI from 'openai';
import { stringify } from 'smol-toml';
import { Program, folder, gather, letheMeanwhile, until } from './cluster.mjs';
import { PeerGateway } from './peers/gateway.mjs';
import { PeerIssuer } from './peers/issuer.mjs';
import { PrivatePath } from './private_path.mjs';

/// `lethe proxy` and the official client as it comes.
class Proxy extends Program {
  static async up(trust, ...more) {
    const made = new Proxy();
    made.arguments = ['proxy', trust, '--listen', '127.0.0.1:0', ...more];
    await made.start(['proxy']);
    made.openai = new OpenAI({ baseURL: made.proxy, apiKey: 'none' });
    return made;
  }
}

async function lethe(...args) {
  const ran = await letheMeanwhile(...args);
  assert.equal(ran.status, 0, ran.stderr);
  return ran.stdout;
}

/// Writes a trust file with an account beside it, and buys so many batches.
async function trusting(at, trust, account, batches) {
  const file = join(at, 'client.toml');
  writeFileSync(file, stringify(trust));
  writeFileSync(join(at, 'account.secret'), `${account}\n`, { mode: 0o600 });
  for (let i = 0; i < batches; ++i) await lethe('tokens', 'buy', file);
  return file;
}

const fine = { code: 0, signal: null };
const ask = { model: 'ember', messages: [{ role: 'user', content: 'What is a river?' }], temperature: 0 };
let path, proxy;
before(async () => {
  path = await PrivatePath.up();
  proxy = await Proxy.up(
    await trusting(path.folder, path.trust, await path.account('ann', 1000), 1));
});
after(async () => {
  if (proxy) assert.deepEqual(await proxy.end(), fine);
  if (path) await path.down();
});

test('models, a chat, its stream and the stream collector agree', async () => {
  const { openai } = proxy;
  assert.deepEqual((await openai.models.list()).data.map((m) => m.id), ['ember']);
  const { choices: [{ message }], usage } = await openai.chat.completions.create(ask);
  assert.match(message.content, /river/);
  const all = await gather(await openai.chat.completions.create(
    { ...ask, stream: true, stream_options: { include_usage: true } }));
  assert.deepEqual(all.text, [message.content]);
  assert.deepEqual(all.usage, usage);
  const final = await openai.chat.completions.stream(ask).finalChatCompletion();
  assert.equal(final.choices[0].message.content, message.content);
  const completion = await openai.completions.create(
    { model: 'ember', prompt: 'Once', max_tokens: 3, n: 2 });
  assert.equal(completion.choices.length, 2);
});

test('what the node refuses is its error, and is not tried again', async () => {
  const calls = () => proxy.said.match(/^call /gm).length;
  const before = calls();
  await assert.rejects(proxy.openai.chat.completions.create({ ...ask, max_tokens: -1 }),
    (e) => e instanceof OpenAI.BadRequestError);
  await assert.rejects(proxy.openai.chat.completions.create({ ...ask, model: 'other' }),
    (e) => e instanceof OpenAI.NotFoundError);
  await until(() => calls() === before + 2, 'two calls are told of', 5);
});

test('a label of a user stays on this machine', async () => {
  // The profile refuses labels, so an answer shows that there was none.
  await proxy.openai.chat.completions.create({ ...ask, user: 'ann', max_tokens: 2 });
});

test('who leaves a stream may ask again', async () => {
  const stream = await proxy.openai.chat.completions.create({ ...ask, stream: true });
  for await (const _ of stream) break;
  await proxy.openai.chat.completions.create({ ...ask, max_tokens: 2 });
});

test('the log says what was checked, and nothing of what was said', async () => {
  await until(() => /^call \d+ +ok +checked .*log head.*roster.*exposure.*receipt.*; 1 draw, \d+ arenas wiped$/m
    .test(proxy.said), 'a line of a call', 5);
  assert.doesNotMatch(proxy.said, /river|ann/);
});

test('an SDK\'s retries stay within the exposure budget', async () => {
  const redraws = 2;
  const issuer = await PeerIssuer.start({ secret: 'what-they-share-0000000000000000', account: 'ann' });
  const gateway = await PeerGateway.start(issuer, { redraws });
  const at = folder(), relay = Object.assign(new Program(), { file: join(at, 'relay.toml') });
  writeFileSync(relay.file, `name = "proxied-${process.pid}"
[relay]
listen = "127.0.0.1:0"
gateway = "${gateway.url}/"\n`);
  await relay.start(['relay']);
  const ours = await Proxy.up(await trusting(at, gateway.trust(relay.relay), 'ann', 5));
  const say = (content) => ours.openai.chat.completions.create(
    { model: 'parrot', messages: [{ role: 'user', content }] });
  const spent = (e) => e instanceof OpenAI.BadRequestError && e.code === 'exposure_spent';

  gateway.full = true;
  await assert.rejects(say('one'), spent);
  assert.equal(gateway.shown, 1 + redraws, 'refusals');
  gateway.full = false;
  await assert.rejects(say('one'), spent);
  assert.equal(gateway.shown, 1 + redraws, 'remembered');

  gateway.onSealed = (bytes) => bytes.slice(0, bytes.length / 4);  // not whole
  await assert.rejects(say('two'), (e) => e.status === 502);
  await assert.rejects(say('two'), spent);
  assert.equal(gateway.shown, 2 * (1 + redraws), 'answers that were cut');
  gateway.onSealed = (bytes) => bytes;

  // The control: a body that is another each time has a budget of its own each time.
  gateway.full = true;
  for (const body of ['three', 'four']) await assert.rejects(say(body), spent);
  assert.equal(gateway.shown, 4 * (1 + redraws));
  gateway.full = false;
  assert.equal((await say('five')).choices[0].message.content, 'five!');

  assert.deepEqual(await ours.end(), fine);
  assert.deepEqual(await relay.end(), fine);
  gateway.stop();
  issuer.stop();
  rmSync(at, { recursive: true });
});

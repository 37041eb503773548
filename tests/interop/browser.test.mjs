// The JavaScript client in Chromium: a page that a person could use, on the whole private path.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { stringify } from 'smol-toml';
import { Chromium } from './browser/chromium.mjs';
import { servePage } from './browser/serve.mjs';
import { Tap } from './browser/tap.mjs';
import { Program, folder } from './cluster.mjs';
import { noteSigner } from './other_side.mjs';
import { PeerGateway } from './peers/gateway.mjs';
import { PeerIssuer } from './peers/issuer.mjs';
import { PrivatePath } from './private_path.mjs';

const taps = {};
const confided = 'My cat is called Tom.';
let page, path, browser, trust = '', secret;
before(async () => {
  page = await servePage(() => trust);
  path = await PrivatePath.up({ origins: [page.origin],
    before: async (role, url) => (taps[role] = await Tap.before(url)).url });
  trust = path.trustText;
  secret = await path.account('ann', 1000);
  browser = await Chromium.up();
});
after(async () => {
  await browser?.down();
  await path?.down();
  for (const tap of Object.values(taps)) tap.stop();
  page?.stop();
});

const at = (name) => `document.querySelector('[data-step="${name}"]')`;
const state = (name) => `${at(name)}.dataset.state`;
const told = (b, name) => b.run(`${at(name)}.textContent`);
const trouble = (b) => b.run("document.getElementById('trouble').textContent");
const messagesOf = (b) =>
  b.run("[...document.querySelectorAll('#messages p')].map((p) => p.innerText)");
const fill = (b, form, field, text) => b.run(`document.getElementById('${field}').value =
  ${JSON.stringify(text)}; document.getElementById('${form}').requestSubmit()`);
const idle = "![...document.querySelectorAll('button')].some((b) => b.disabled)";

async function looked(b, origin = page.origin) {
  await b.open(`${origin}/`);
  await b.until(idle, 'the page has looked');
}
async function bought(b, by = secret) {
  await fill(b, 'account', 'secret', by);
  await b.until(idle, 'tokens are bought');
}
async function asked(b, words) {
  await fill(b, 'ask', 'words', words);
  await b.until(idle, 'the answer has ended');
}
async function allGood(b) {
  assert.equal(await trouble(b), '');
  for (const name of ['trust', 'log', 'roster', 'tokens', 'seal', 'answer', 'receipt'])
    assert.equal(await b.run(state(name)), 'good', name);
}

test('a page buys, asks, and verifies what it is answered', async () => {
  await looked(browser);
  await bought(browser);
  assert.match(await told(browser, 'tokens'), /64 tokens left/);
  for (const [turn, words] of [confided, 'And you?'].entries()) {
    await asked(browser, words);
    await allGood(browser);
    const messages = await messagesOf(browser);
    assert.equal(messages.length, 2 * turn + 2);
    assert.ok(messages.at(-2) === words && messages.at(-1).length > 0, messages);
    assert.match(await told(browser, 'tokens'), new RegExp(`${63 - turn} tokens left`));
    assert.match(await told(browser, 'receipt'), /epoch \d+, release [0-9a-f]{16}…, \d+ bytes/);
  }
});

test('a page that is loaded again knows nothing, and nothing is stored', async () => {
  assert.match(await told(browser, 'tokens'), /tokens left/, 'there is something to lose');
  await looked(browser);
  assert.deepEqual(await messagesOf(browser), []);
  assert.equal(await told(browser, 'tokens'), 'Tokens');
  assert.equal(await browser.run("document.getElementById('secret').value"), '');
  assert.ok(await browser.run("document.getElementById('ask').hidden"));
  assert.deepEqual(await browser.run(`(async () => [localStorage.length, sessionStorage.length,
    document.cookie, await indexedDB.databases(), await caches.keys(),
    await navigator.serviceWorker.getRegistrations()])()`), [0, 0, '', [], [], []]);
});

test('a gateway sees the same of two browsers', async () => {
  const switches = [[], ['--user-agent=Other/1.0', '--accept-lang=de-DE']], front = [], behind = [];
  for (const more of switches) {
    for (const tap of Object.values(taps)) tap.takeHeads();
    const b = await Chromium.up(more);
    await looked(b);
    await bought(b);
    await asked(b, 'Hello');
    await allGood(b).finally(() => b.down());
    front.push(taps.relay.takeHeads().join(''));
    behind.push(taps.gateway.takeHeads());
  }
  for (const said of ['Origin: ', 'User-Agent: ', 'Accept-Language: ', 'Sec-Fetch-'])
    assert.ok(front[0].includes(said), `the relay is told: ${said}`);
  assert.notEqual(front[0], front[1]);
  assert.match(front[1], /Other\/1\.0[^]*de-DE/);
  for (const said of ['Referer', 'Cookie']) assert.ok(!front[0].includes(said), said);
  const host = `Host: ${new URL(taps.gateway.url).host}\r\n`, post = (type, more = '') =>
    `POST / HTTP/1.1\r\n${host}Content-Type: ${type}\r\n${more}Transfer-Encoding: chunked\r\n\r\n`;
  assert.deepEqual(behind[0], [`GET /.well-known/ohttp-gateway HTTP/1.1\r\n${host}\r\n`,
    post('message/ohttp-chunked-req', 'Incremental: ?1\r\n'), post('message/ohttp-req')]);
  assert.deepEqual(behind[1], behind[0]);
});

test('a page of another origin reads nothing of the relay', async () => {
  const other = await servePage(() => trust);
  await looked(browser, other.origin).finally(() => other.stop());
  assert.equal(await browser.run(state('trust')), 'good');
  assert.match(await trouble(browser), /^relay: not reached; a page's origin must be in/);
  assert.equal(await browser.run(state('log')), 'bad');
});

/// A gateway of npm's packages behind our relay, which tests may spoil.
async function withPeers(run) {
  const account = 'the-account-of-whoever-asks', here = folder();
  const relay = Object.assign(new Program(), { file: join(here, 'relay.toml') });
  const issuer = await PeerIssuer.start({ secret: 'none', account, page: page.origin });
  const gateway = await PeerGateway.start(issuer), kept = trust;
  try {
    writeFileSync(relay.file, `name = "browser-relay-${process.pid}"
[relay]
listen = "127.0.0.1:0"
gateway = "${gateway.url}/"
origins = ["${page.origin}"]\n`);
    await relay.start(['relay']);
    trust = stringify(gateway.trust(relay.relay));
    await run(gateway, account);
  } finally {
    trust = kept;
    if (relay.child) await relay.end();
    for (const peer of [gateway, issuer]) peer.stop();
    rmSync(here, { recursive: true });
  }
}

test('what is spoilt is refused, in words, and nothing of it is shown', () => withPeers(
  async (gateway, account) => {
    const good = { witness: gateway.witness, onRoster: gateway.onRoster };
    const otherWitness = await noteSigner('peer-witness', 4, new Uint8Array(32).fill(1));
    const flip = (bytes) => bytes.map((byte, i) => byte ^ (i === bytes.length - 1 ? 1 : 0));
    for (const [step, why, spoilt] of [
      ['log', /^log: no quorum$/, { witness: otherWitness }],
      ['roster', /^roster: it is not the one that is logged$/, { onRoster: flip }],
    ]) {
      Object.assign(gateway, spoilt);
      await looked(browser);
      assert.match(await trouble(browser), why);
      assert.equal(await browser.run(state(step)), 'bad');
      assert.ok(await browser.run("document.getElementById('ask').hidden"));
      Object.assign(gateway, good);
    }
    await looked(browser);
    await bought(browser, account);
    const honest = gateway.onReceipt, other = new Uint8Array(32);
    for (const [why, spoilt] of [
      [/^receipt: it is for another request$/, (r) => ({ ...r, requestHash: other })],
      [/^receipt: the node runs another release/, (r) => ({ ...r, release: other })],
    ]) {
      gateway.onReceipt = spoilt;
      await asked(browser, 'Polly');
      assert.match(await trouble(browser), why);
      assert.equal(await browser.run(state('receipt')), 'bad');
      assert.deepEqual(await messagesOf(browser), []);
    }
    gateway.onReceipt = honest;
    await asked(browser, 'Polly');
    await allGood(browser);
    assert.deepEqual(await messagesOf(browser), ['Polly', 'Polly!']);
  }));

test('a browser that has ended left no secret on the disk', async () => {
  await browser.stop();
  const files = readdirSync(browser.folder, { recursive: true })
    .map((name) => join(browser.folder, name))
    .filter((name) => statSync(name, { throwIfNoEntry: false })?.isFile());
  const holds = (words) => files.some((name) => readFileSync(name).includes(words));
  assert.ok(holds(new URL(page.origin).host), 'where it was is found');
  for (const words of [secret, confided]) assert.ok(!holds(words), words);
});

test("client and page use what browsers have, and nothing of Node's", () => {
  const sources = readdirSync(new URL('./client', import.meta.url))
    .filter((name) => name.endsWith('.mjs')).map((name) => `client/${name}`)
    .concat('browser/page.mjs');
  assert.ok(sources.length > 8);
  const nodes = /from ['"]node:|\brequire\(|\bBuffer\b|\bprocess\.|\bimport\(/;
  for (const name of sources)
    assert.doesNotMatch(readFileSync(new URL(name, import.meta.url), 'utf8'), nodes, name);
  assert.match(readFileSync(new URL('browser/serve.mjs', import.meta.url), 'utf8'), nodes);
});

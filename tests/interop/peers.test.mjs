// The other way: `lethe` as the client of an issuer, a gateway and a node that others' packages
// are, and our gateway with that issuer.
import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { stringify } from 'smol-toml';
import { PrivateClient } from './client/client.mjs';
import { nodeKeyId, sealToNodes } from './client/sealed.mjs';
import * as tokens from './client/tokens.mjs';
import { Program, folder, letheMeanwhile } from './cluster.mjs';
import { PeerGateway } from './peers/gateway.mjs';
import { PeerIssuer } from './peers/issuer.mjs';
import { PrivatePath } from './private_path.mjs';

const account = 'the-account-of-whoever-asks', secret = 'what-issuer-and-gateway-share-00000000';
const messages = [{ role: 'user', content: 'Polly' }];
let issuer, gateway, relay, here, trust, client;
before(async () => {
  issuer = await PeerIssuer.start({ secret, account });
  gateway = await PeerGateway.start(issuer);
  here = folder();
  relay = Object.assign(new Program(), { file: join(here, 'relay.toml') });
  writeFileSync(relay.file, `name = "relay-${process.pid}"
[relay]
listen = "127.0.0.1:0"
gateway = "${gateway.url}/"\n`);
  await relay.start(['relay']);
  trust = join(here, 'client.toml');
  writeFileSync(trust, stringify(gateway.trust(relay.relay)));
  writeFileSync(join(here, 'account.secret'), `${account}\n`, { mode: 0o600 });
});
after(async () => {
  if (relay?.child) assert.deepEqual(await relay.end(), { code: 0, signal: null });
  gateway?.stop();
  issuer?.stop();
  if (here) rmSync(here, { recursive: true });
});

const fetchBy = (...more) => letheMeanwhile('fetch', trust, '--data',
  JSON.stringify({ model: 'parrot', messages }), ...more);
const buy = () => letheMeanwhile('tokens', 'buy', trust);
const count = async () => (await letheMeanwhile('tokens', 'count', trust)).stdout;

/// One thing of the gateway's otherwise, for a while.
function spoilt(what, run) {
  const kept = Object.fromEntries(Object.keys(what).map((key) => [key, gateway[key]]));
  Object.assign(gateway, what);
  return run().finally(() => Object.assign(gateway, kept));
}

test('lethe buys tokens from an issuer on privacypass-ts', async () => {
  const bought = await buy();
  assert.equal(bought.status, 0, bought.stderr);
  assert.equal(issuer.counts.batch, 4);
  assert.match(await count(), /^4 tokens/);
});

test('lethe is answered by a gateway and a node on @hpke/core', async () => {
  const said = await fetchBy('--explain');
  assert.equal(said.status, 0, said.stderr);
  assert.equal(JSON.parse(said.stdout).choices[0].message.content, 'Polly!');
  assert.match(said.stderr, /ok +receipt/);
  assert.match(await count(), /^3 tokens/);
});

test('so is the JavaScript client', async () => {
  client = new PrivateClient({ trust: gateway.trust(relay.relay), secret: account });
  await client.buy();
  await client.buy();
  const { status, json } = await client.chat({ model: 'parrot', messages });
  assert.deepEqual([status, json.choices[0].message.content], [200, 'Polly!']);
});

test('change of that issuer goes into the wallet', async () => {
  const said = await spoilt({ full: true }, () => fetchBy());
  assert.equal(said.status, 1, said.stdout);
  assert.match(said.stderr, /is not ready/);
  await letheMeanwhile('tokens', 'claim', trust); // unless it was asked for at once
  assert.equal(gateway.changed, 1);
  assert.match(await count(), /^3 tokens/);
});

test('what a node or gateway spoils is refused', async () => {
  const other = (field) => (r) => ({ ...r, [field]: new Uint8Array(32) });
  const flip = (at) => (bytes) => bytes.map((byte, i) => byte ^ (i === at ? 1 : 0));
  const spoils = [
    [/receipt: it is for another request/, { onReceipt: other('requestHash') }],
    [/receipt: it is for another request/, { onReceipt: other('tokenHash') }],
    [/receipt: it is for another request/, { onReceipt: (r) => ({ ...r, epoch: 2 }) }],
    [/ended before its final chunk/, { onSealed: (bytes) => bytes.slice(0, -600) }],
    [/chunk 0 holds 256 bytes; the policy has 512/, { chunkBytes: 256 }],
    [/chunk 0 holds/, { chunkBytes: 0 }],
    [/opens for none/, { onSealed: flip(50) }],
    [/does not open/, { onSealed: (bytes) => flip(bytes.length - 1)(bytes) }],
  ];
  for (const [why, how] of spoils) {
    if (/^0 token/.test(await count())) assert.equal((await buy()).status, 0);
    if (client.tokensLeft === 0) await client.buy();
    const said = await spoilt(how, () => fetchBy());
    assert.equal(said.status, 1, `it was taken: ${said.stdout}`);
    assert.match(said.stderr, why);
    await assert.rejects(spoilt(how, () => client.chat({ model: 'parrot', messages })),
      /another request|cut off|opens for none|does not open|a chunk of/);
  }
  await assert.rejects(
    spoilt({ onReceipt: other('release') }, () => client.chat({ model: 'parrot', messages })),
    /another release/);
  await assert.rejects(spoilt({ onRoster: flip(100) }, () => client.look()), /roster/);
  const roster = await spoilt({ onRoster: flip(100) }, () => fetchBy());
  assert.equal(roster.status, 1, roster.stdout);
  assert.match(roster.stderr, /roster/);
  await buy();
  assert.equal((await fetchBy()).status, 0, 'as it was before');
});

test('our gateway redeems tokens of that issuer, and has them changed', async () => {
  const path = await PrivatePath.up({ issuer });
  const ours = new PrivateClient({ trust: path.trust, secret: account });
  const { challenge, directory, roster, config } = await ours.look();
  assert.deepEqual(directory, issuer.directory());
  const buyOne = () => tokens.buyOne({ url: issuer.url, secret: account, challenge,
    key: tokens.keyToUse(directory) });
  const ask = { model: 'ember', messages, max_tokens: 2 };
  const good = await ours.seal('/v1/chat/completions', ask, await buyOne());
  assert.equal((await ours.send(config, await ours.outer(good))).status, 200);

  const token = await buyOne(), nobody = { ...roster.leaves[0], sigpk: new Uint8Array(32) };
  nobody.id = await nodeKeyId(nobody.suite, nobody.pk, nobody.sigpk);
  const sealed = await ours.seal('/v1/chat/completions', ask, token);
  const lost = { ...sealed, ...await sealToNodes(new Uint8Array(1024), [nobody], roster.epoch,
    token.serialize()) };
  assert.equal((await ours.send(config, await ours.outer(lost))).status, 404);
  await ours.claim(lost);
  assert.equal(issuer.counts.changed, 1);
  assert.equal((await ours.chat(ask)).status, 200);
  const fine = { code: 0, signal: null };
  assert.deepEqual(await path.down(), [fine, fine]);
});

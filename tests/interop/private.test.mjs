// The private path, asked by what others wrote: Privacy Pass, HPKE and binary HTTP from npm.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  MediaType, PRIVATE_TOKEN_ISSUER_DIRECTORY, TOKEN_TYPES, Token, TokenChallenge,
  WWWAuthenticateHeader, getIssuerUrl, header_to_token, publicVerif,
} from '@cloudflare/privacypass-ts';
import { BHttpDecoder, BHttpEncoder } from 'bhttp-js';
import { base64url } from 'rfc4648';
import { equal, piecesIn, piecesOf, sha256, textOf } from './client/bytes.mjs';
import { encodeRequest, gather } from './client/bhttp.mjs';
import { PrivateClient, Refused } from './client/client.mjs';
import { cutChunks } from './client/chunks.mjs';
import { chunked, readKeys, sealRequest, whole } from './client/ohttp.mjs';
import { nodeKeyId, sealToNodes } from './client/sealed.mjs';
import * as tokens from './client/tokens.mjs';
import { until } from './cluster.mjs';
import { PrivatePath } from './private_path.mjs';

let path, client, view;
before(async () => {
  path = await PrivatePath.up();
  client = await path.client('ann');
  view = await client.look();
  await client.buy();
});
after(async () => {
  const good = { code: 0, signal: null };
  if (path) assert.deepEqual(await path.down(), [good, good, good]);
});

const chatPath = '/v1/chat/completions';
const messages = [{ role: 'user', content: 'Hello' }];
const body = { model: 'ember', messages, max_tokens: 12, temperature: 0 };
const key = () => tokens.keyToUse(view.directory);

/// The inner answer to a sealed request, as the gateway gives it.
async function sendSealed(sealed, more) {
  const answer = await client.send(view.config, await client.outer(sealed, more));
  await gather(answer.content);
  const { status, headers } = answer;
  return { status, headers, change: headers.get('lethe-change') };
}

/// Privacy Pass's own client, which says https and knows no accounts, against our issuer.
async function atIssuer(secret, run) {
  const real = globalThis.fetch;
  globalThis.fetch = (url, how = {}) => {
    const headers = new Headers(how.headers);
    headers.set('authorization', `Bearer ${secret}`);
    const to = String(url).replace('https://issuer/', `${path.issuer.issuer}/`);
    return real(to, { ...how, headers });
  };
  return run().finally(() => { globalThis.fetch = real; });
}

/// bhttp-js on both ends: a request that it wrote, and the answer that it read.
async function askWhole(request) {
  const sealed = await sealRequest(view.config, await new BHttpEncoder().encodeRequest(request));
  const answer = await fetch(`${path.relay.relay}/`,
    { method: 'POST', headers: { 'content-type': sealed.type }, body: sealed.body });
  assert.equal(answer.status, 200);
  assert.equal(answer.headers.get('content-type'), whole.response);
  const inner = await gather(sealed.open(piecesOf(answer.body)));
  return new BHttpDecoder().decodeResponse(inner);
}
const inside = (at, how) => new Request(`https://${path.name}${at}`, how);

test('the directory of the issuer is one that privacypass-ts uses', async () => {
  const answer = await fetch(`${path.issuer.issuer}${PRIVATE_TOKEN_ISSUER_DIRECTORY}`);
  assert.equal(answer.headers.get('content-type'), MediaType.PRIVATE_TOKEN_ISSUER_DIRECTORY);
  assert.deepEqual(await answer.json(), view.directory, 'what is logged is what is served');
  const url = await atIssuer('none', () => getIssuerUrl('issuer'));
  assert.equal(url, 'https://issuer/token-request');
  assert.equal(key().length, 342);
  publicVerif.TokenRequest.deserialize(TOKEN_TYPES.BLIND_RSA,
    (await tokens.ask(view.challenge, key())).bytes);
});

test('a 401 is a challenge that privacypass-ts answers, and its token pays', async () => {
  const refused = await askWhole(inside('/sealed', { method: 'POST', body: new Uint8Array(1),
    headers: { 'content-type': 'application/lethe-sealed-req' } }));
  assert.equal(refused.status, 401);
  const demand = refused.headers.get('www-authenticate');
  const [{ challenge, tokenKey }] = WWWAuthenticateHeader.parse(demand);
  assert.deepEqual(challenge, view.challenge);
  assert.deepEqual(tokenKey, key());
  assert.deepEqual([challenge.tokenType, challenge.issuerName, challenge.originInfo],
    [2, 'issuer', [path.name]]);

  const secret = await path.account('bea', 1);
  const encoded = await atIssuer(secret, () => header_to_token(demand));
  const authorization = textOf(base64url.parse(encoded));
  const token = Token.deserialize(TOKEN_TYPES.BLIND_RSA,
    base64url.parse(authorization.slice('PrivateToken token='.length)));
  const sealed = await client.seal(chatPath, body, token);
  assert.equal((await sendSealedWhole(sealed, { authorization })).receipt.epoch, view.roster.epoch);
});

/// A sealed request in one piece, and its whole answer.
async function sendSealedWhole(sealed, more) {
  const answer = await client.send(view.config, await client.outer(sealed, more));
  assert.equal(answer.status, 200);
  assert.equal(answer.headers.get('content-type'), 'application/lethe-sealed-res');
  const inner = new BHttpDecoder().decodeResponse(await gather(sealed.answer.open(answer.content)));
  return { inner, receipt: sealed.answer.receipt };
}

test('tokens are bought one by one or by the batch, and verify', async () => {
  const secret = await path.account('cat', 65), url = path.issuer.issuer;
  const all = [await tokens.buyOne({ url, secret, challenge: view.challenge, key: key() }),
    ...await tokens.buyBatch({ url, secret, challenge: view.challenge, key: key(), count: 64 })];
  assert.equal(new Set(all.map((t) => String(t.authInput.nonce))).size, 65);
  const origin = new publicVerif.Origin(publicVerif.BlindRSAMode.PSS, [path.name]);
  const spki = (await import('@cloudflare/privacypass-ts')).util.convertRSASSAPSSToEnc(key());
  const publicKey = await crypto.subtle.importKey('spki', spki,
    { name: 'RSA-PSS', hash: 'SHA-384' }, true, ['verify']);
  for (const t of all) assert.ok(await origin.verify(t, publicKey));
  const more = { url, challenge: view.challenge, key: key() };
  await assert.rejects(tokens.buyOne({ ...more, secret }), /429/, 'the quota is used up');
  await assert.rejects(tokens.buyOne({ ...more, secret: 'nobody' }), /401/);
  await assert.rejects(tokens.buyBatch({ ...more, secret: client.secret, count: 2 }), /403/);
});

test('requests of known length and chunked ones open, and so do their answers', async () => {
  const [known] = readKeys(await client.fetchKeys());
  for (const form of [whole, chunked]) {
    const request = await encodeRequest(path.name, '/checkpoint');
    const answer = await client.send(known, request, form);
    assert.equal(answer.status, 200);
    assert.match(textOf(await gather(answer.content)), new RegExp(`^${path.name}\n[0-9]+\n`));
  }
});

test('bhttp-js reads what the gateway serves', async () => {
  const checkpoint = await askWhole(inside('/checkpoint'));
  assert.equal(checkpoint.headers.get('content-type'), 'text/plain; charset=utf-8');
  assert.match(await checkpoint.text(), /^private-/);
  const roster = await askWhole(inside('/roster'));
  assert.equal(roster.headers.get('content-type'), 'application/lethe-roster');
  assert.deepEqual(await (await askWhole(inside('/issuer-directory'))).json(), view.directory);
  assert.equal((await askWhole(inside('/tile/entries/777'))).status, 404);
  assert.equal((await askWhole(inside('/roster/777'))).status, 404);
  assert.equal((await askWhole(inside('/checkpoint', { method: 'PUT', body: 'x' }))).status, 405);
});

test('a chat is answered in one piece, with a receipt', async () => {
  const sealed = await client.seal(chatPath, body);
  const { inner, receipt } = await sendSealedWhole(sealed);
  const { choices: [{ message }] } = await inner.json();
  assert.ok(message.content.length > 0);
  assert.deepEqual(receipt.tokenHash, await sha256(sealed.token.serialize()));
  assert.deepEqual(receipt.requestHash, await sha256(sealed.message));
  assert.deepEqual(receipt.release, view.release);
  assert.ok(receipt.arenas > 0 && receipt.bytesWiped > 0);
});

test('a chat streams through relay and gateway', async () => {
  const { json, receipt } = await client.chat(body);
  const { content } = json.choices[0].message;
  assert.equal(receipt.epoch, view.roster.epoch);
  // Tokens that are ready together share a piece: one short answer may well come whole.
  await until(async () => {
    const pieces = [];
    for await (const event of client.stream(body)) pieces.push(event.choices[0].delta.content);
    assert.equal(pieces.join(''), content);
    return pieces.filter((piece) => piece).length > 1;
  }, 'a stream in pieces');
});

/// What each chunk of a sealed answer takes on the wire, the stream's nonce aside.
async function wireSizes(by, asked) {
  const { config } = await by.view();
  const outer = await sealRequest(config, await by.outer(await by.seal(chatPath, asked)), chunked);
  const answer = await fetch(`${by.relay}/`, { method: 'POST', body: outer.body,
    headers: { 'content-type': outer.type, incremental: '?1' } });
  const sizes = [];
  for await (const [chunk, last] of cutChunks(piecesOf(answer.body), 16, 'answer'))
    sizes.push(chunk.length + (last ? 1 : 2));
  return sizes.slice(1); // the first is the nonce
}
const kinds = [body, { ...body, max_tokens: 1 }, { ...body, max_tokens: 90 },
  { ...body, stream: true }, { ...body, stream: true, logprobs: true, top_logprobs: 5, n: 2 },
  { model: 'other', messages }, { ...body, max_tokens: -1 }];

test('all answers are chunks of one size, a power of two of them', async () => {
  const heads = new Set();
  for (const asked of kinds) {
    const [first, ...sizes] = await wireSizes(client, asked);
    assert.deepEqual([...new Set(sizes)], [view.policy.chunk_bytes + 38], JSON.stringify(asked));
    assert.equal(Math.log2(sizes.length + 1) % 1, 0);
    heads.add(first - sizes[0]);
  }
  assert.equal(heads.size, 1, 'the head in front of the first is the same');
});

test('an answer that is not shaped shows its lengths, and is taken where it is accepted by name',
  async () => {
    const other = await PrivatePath.up({ profile: 'lab', more: '[shape]\nmode = "off"' });
    const plain = await other.client('ann');
    await plain.buy();
    const seen = new Set();
    for (const asked of kinds) seen.add(String(await wireSizes(plain, asked)));
    assert.ok(seen.size > 4, [...seen].join(' '));
    assert.equal((await plain.chat(body)).status, 200);
    assert.equal(other.trust.policy.shape, 'off');
    const trust = { ...other.trust, policy: { ...other.trust.policy, shape: 'size' } };
    await assert.rejects(new PrivateClient({ trust }).look(), /the shape of answers is "off"/);
    const fine = { code: 0, signal: null };
    assert.deepEqual(await other.down(), [fine, fine, fine]);
  });

test('an answer is handed on before what proves it', async () => {
  const answer = await client.ask(chatPath, body);
  assert.equal(answer.proof, null);
  assert.equal((await answer.json()).object, 'chat.completion');
  assert.equal((await answer.proof).epoch, view.roster.epoch);
});

test('what the API refuses is refused inside the seal, with a receipt', async () => {
  const { status, json, receipt } = await client.chat({ model: 'other', messages });
  assert.equal(status, 404);
  assert.equal(json.error.code, 'model_not_found');
  assert.ok(receipt);
  const stream = client.stream({ ...body, max_tokens: -1 });
  await assert.rejects(stream.next(), (e) => e instanceof Refused && e.status === 400);
});

test('a long prompt takes many chunks', async () => {
  const long = 'word '.repeat(20000); // 100 KB, in a bucket of 256 KiB
  const asked = { ...body, messages: [{ role: 'user', content: long }] };
  const { status, json } = await client.chat(asked);
  assert.equal(status, 400);
  assert.equal(json.error.code, 'context_length_exceeded');
});

test('a token is spent once', async () => {
  const sealed = await client.seal(chatPath, body);
  assert.equal((await sendSealedWhole(sealed)).inner.status, 200);
  const again = await sendSealed(sealed);
  assert.deepEqual([again.status, again.change], [403, 'none']);
  const other = await client.seal(chatPath, body);
  const reused = await sealToNodes(new Uint8Array(1024), sealed.nodes, view.roster.epoch,
    sealed.token.serialize());
  const moved = await sendSealed({ ...other, ...reused, token: sealed.token });
  assert.deepEqual([moved.status, moved.change], [403, 'none']);
  await assert.rejects(client.claim(sealed), { status: 403 });
});

test('a seal that was changed is refused, and no change is due', async () => {
  for (const at of [-1, -20, 20, 60, 100]) {
    const sealed = await client.seal(chatPath, body);
    sealed.message[at < 0 ? sealed.message.length + at : at] ^= 1;
    const { status, change } = await sendSealed(sealed);
    if (at === 20) assert.deepEqual([status, change], [404, 'due'], 'nobody has that key');
    else assert.deepEqual([status, change], [400, 'none'], `byte ${at}`);
    if (at !== 20) await assert.rejects(client.claim(sealed), { status: 403 });
  }
});

test('a seal is bound to its token', async () => {
  const one = await client.seal(chatPath, body), other = await client.seal(chatPath, body);
  const { status, change } = await sendSealed({ ...one, token: other.token });
  assert.deepEqual([status, change], [400, 'none']);
});

test('nothing is spent where form or token is wrong', async () => {
  const sealed = await client.seal(chatPath, body);
  const wrong = [
    [400, { 'lethe-change': 'AAAA' }], [400, {}, sealed.message.slice(0, 30)],
    [401, { authorization: 'PrivateToken token="AAAA"' }], [401, { authorization: 'Bearer x' }],
  ];
  for (const [wanted, more, message] of wrong) {
    const sent = { ...sealed, message: message ?? sealed.message };
    const { status, change } = await sendSealed(sent, more);
    assert.deepEqual([status, change], [wanted, null], JSON.stringify(more));
  }
  const challenge = new TokenChallenge(2, 'issuer', new Uint8Array(0), ['elsewhere']);
  const foreign = await tokens.buyOne({ url: path.issuer.issuer, secret: client.secret, challenge,
    key: key() });
  const { status, change, headers } = await sendSealed({ ...sealed, token: foreign });
  assert.deepEqual([status, change], [401, null]);
  assert.equal(WWWAuthenticateHeader.parse(headers.get('www-authenticate')).length, 1);
  assert.equal((await sendSealedWhole(sealed)).inner.status, 200, 'its token was never spent');
});

test('change comes back for what no node took, and pays', async () => {
  const sealed = await client.seal(chatPath, body);
  const pk = (await crypto.subtle.exportKey('raw',
    (await crypto.subtle.generateKey('X25519', true, ['deriveBits'])).publicKey));
  const nobody = { ...view.roster.leaves[0], pk: new Uint8Array(pk) };
  nobody.id = await nodeKeyId(nobody.suite, nobody.pk, nobody.sigpk);
  const lost = { ...sealed, ...await sealToNodes(new Uint8Array(1024), [nobody], view.roster.epoch,
    sealed.token.serialize()) };
  const { status, change } = await sendSealed(lost);
  assert.deepEqual([status, change], [404, 'due']);
  const other = await client.seal(chatPath, body);
  await assert.rejects(client.claim({ ...lost, change: other.change }), { status: 403 });
  while (client.tokensLeft > 0) client.take();
  await client.claim(lost);
  assert.equal(client.tokensLeft, 1);
  assert.equal((await client.chat(body)).status, 200);
  await client.buy();
});

test('an unknown key is told in a problem document', async () => {
  for (const form of [whole, chunked]) {
    const id = (view.config.id + 100) % 256;
    const request = await encodeRequest(path.name, '/checkpoint');
    const asked = client.send({ ...view.config, id }, request, form);
    const why = await asked.then(() => assert.fail('it was taken'), (e) => e);
    assert.equal(why.status, 400);
    assert.equal(why.headers.get('content-type'), 'application/problem+json');
    assert.match(why.message, /https:\/\/iana.org\/assignments\/http-problem-types#ohttp-key/);
  }
});

test('a request is opened once', async () => {
  const sealed = await sealRequest(view.config, await encodeRequest(path.name, '/checkpoint'));
  const post = () => fetch(`${path.relay.relay}/`,
    { method: 'POST', headers: { 'content-type': sealed.type }, body: sealed.body });
  assert.equal((await post()).status, 200);
  assert.equal((await post()).status, 400);
});

test('an answer that was cut or changed anywhere does not open', async () => {
  const sealed = await client.seal(chatPath, body);
  const outer = await sealRequest(view.config, await client.outer(sealed), chunked);
  const answer = await fetch(`${path.relay.relay}/`, { method: 'POST', body: outer.body,
    headers: { 'content-type': outer.type, incremental: '?1' } });
  const bytes = new Uint8Array(await answer.arrayBuffer());
  const open = (content) => gather(outer.open(piecesIn([content])));
  assert.ok((await open(bytes)).length > 0);
  for (let at = 0; at < bytes.length; at += 997) {
    await assert.rejects(open(bytes.slice(0, at)), `cut at ${at}`);
    const changed = bytes.slice();
    changed[at] ^= 1;
    await assert.rejects(open(changed), `changed at ${at}`);
  }
});

test('a client believes its trust file alone', async () => {
  const other = (more) => new PrivateClient({ trust: { ...path.trust, ...more } }).look();
  await other({});
  const letter = (text) => (text === 'A' ? 'B' : 'A');
  const spoil = (text) => text.slice(0, -9) + letter(text.at(-9)) + text.slice(-8);
  await assert.rejects(other({ log: spoil(path.trust.log) }), /its id is not that of its key/);
  await assert.rejects(other({ log: path.trust.witnesses[0] }), /wrong algorithm/);
  await assert.rejects(other({ witnesses: [], quorum: 1 }), /no quorum/);
  await assert.rejects(other({ origin: 'elsewhere' }), /challenge/);
  await assert.rejects(other({ evidence: ['tpm2'] }), /evidence/);
  await assert.rejects(other({ policy: { ...path.trust.policy, candidates_max: 0 } }), /beyond/);
  await assert.rejects(other({ policy: { ...path.trust.policy, name: 'strict' } }), /beyond/);
});

test('keys that were not logged are not used', async () => {
  const swapped = new PrivateClient({ trust: path.trust });
  const real = await swapped.fetchKeys();
  const half = real.length / 2;
  swapped.fetchKeys = async () => new Uint8Array([...real.slice(half), ...real.slice(0, half)]);
  await assert.rejects(swapped.look(), /not the logged ones/);
  assert.ok(!equal(real, await swapped.fetchKeys()));
});

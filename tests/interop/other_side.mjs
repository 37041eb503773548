// The other end of the client's bytes, for vectors: a node, a log, a witness and an identity.
import { base64, base64url } from 'rfc4648';
import {
  be, concat, equal, hex, piecesIn, sha256, sized, unhex, utf8, varint,
} from './client/bytes.mjs';
import { ChunkKeys, cutChunks, sealChunks } from './client/chunks.mjs';
import { suiteBytes, suiteOf } from './client/ohttp.mjs';
import {
  answerLabel, bindingOf, nodeKeyId, readSealed, refusalReasons, sealInfo, wrapAad,
} from './client/sealed.mjs';

export const suite = { kem: 0x0020, kdf: 1, aead: 1 };

const publicOf = async (key) =>
  base64url.parse((await crypto.subtle.exportKey('jwk', key)).x, { loose: true });

/// An Ed25519 key of its 32 bytes.
export async function signer(seed) {
  const pkcs8 = concat(unhex('302e020100300506032b657004220420'), seed);
  const key = await crypto.subtle.importKey('pkcs8', pkcs8, 'Ed25519', true, ['sign']);
  const sign = async (...message) =>
    new Uint8Array(await crypto.subtle.sign('Ed25519', key, concat(...message)));
  return { publicKey: await publicOf(key), sign };
}

/// A node of two private keys: {suite, pk, sigpk, id} and what opens and signs.
export async function nodeOf(sealPrivate, signPrivate) {
  const { kem } = suiteOf(suite).hpke, sign = await signer(signPrivate);
  const key = await kem.importKey('raw', sealPrivate.slice().buffer, false);
  const pk = await publicOf(key);
  const id = await nodeKeyId(suite, pk, sign.publicKey);
  return { suite, pk, sigpk: sign.publicKey, id, key, sign: sign.sign };
}

/// What a node has of a request that opened: {plain, secret, enc, requestHash, binding}.
export async function openAtNode(node, message, token) {
  const { epoch, entries, chunks } = readSealed(message);
  const tokenHash = await sha256(token), entry = entries.find((e) => equal(e.id, node.id));
  const binding = await bindingOf(suite, epoch, entries, tokenHash);
  const context = await suiteOf(suite).hpke.createRecipientContext(
    { recipientKey: node.key, enc: entry.enc.buffer, info: sealInfo(suite, epoch, node.id) });
  const cek = await context.open(entry.wrapped, await wrapAad(binding, chunks));
  const keys = await ChunkKeys.from(cek, binding, 16), parts = [];
  for await (const [bytes, last] of cutChunks(piecesIn([chunks]), 0, 'sealed request'))
    parts.push(await keys.open(bytes, last));
  const secret = new Uint8Array(await context.export(utf8(answerLabel), 16));
  return { plain: concat(...parts), secret, enc: entry.enc, binding, epoch, tokenHash,
    requestHash: await sha256(message) };
}

export async function signReceipt(node, r) {
  const fields = concat(r.tokenHash, r.requestHash, r.release, be(r.epoch, 4), be(r.arenas, 4),
    be(r.bytesWiped, 8));
  return concat(fields, await node.sign(utf8('lethe receipt'), fields));
}

export async function signRefusal(node, { binding, epoch, reason }) {
  const fields = concat(binding, be(epoch, 4), be(refusalReasons.indexOf(reason) + 1, 1));
  return concat(fields, await node.sign(utf8('lethe refusal'), fields));
}

const filled = (bytes, size) => concat(bytes, new Uint8Array(Math.max(0, size - bytes.length)));

/// The pieces of an answer, the first of which names the node, then its receipt: with `chunkBytes`
/// in chunks of that size, a power of two of them.
export async function sealAnswer(node, { secret, enc }, pieces, receipt, chunkBytes = 0) {
  const nonce = crypto.getRandomValues(new Uint8Array(16)), parts = [nonce];
  const keys = await ChunkKeys.from(secret, concat(enc, nonce), 16);
  const all = [...pieces];
  while (chunkBytes && Math.log2(all.length + 1) % 1 !== 0) all.push(new Uint8Array(0));
  for (const [i, piece] of all.entries()) {
    const said = chunkBytes ? concat(be(piece.length, 2), piece) : piece;
    const sealed = await keys.seal(filled(i === 0 ? concat(node.id, said) : said, chunkBytes));
    parts.push(varint(sealed.length), sealed);
  }
  const last = filled(receipt, chunkBytes);
  return concat(...parts, await sealChunks(last, (piece) => keys.seal(piece, true)));
}

export async function signLeaf(node, identity, { modelClass, capacity, notBefore, notAfter }) {
  const fields = [suiteBytes(suite), node.pk, node.sigpk, identity.publicKey, utf8(modelClass),
    be(capacity, 4), utf8('none'), new Uint8Array(0), be(notBefore, 8), be(notAfter, 8)];
  const signed = concat(...fields.map(sized));
  return concat(signed, sized(await identity.sign(signed)));
}

/// A note's key and what signs with it.
export async function noteSigner(name, algorithm, seed) {
  const { publicKey, sign } = await signer(seed), told = concat(be(algorithm, 1), publicKey);
  const keyId = (await sha256(utf8(`${name}\n`), told)).slice(0, 4);
  const line = (bytes) => `\u2014 ${name} ${base64.stringify(concat(keyId, bytes))}\n`;
  return {
    text: `${name}+${hex(keyId)}+${base64.stringify(told)}`,
    sign: async (body) => line(await sign(utf8(body))),
    cosign: async (body, timeS) => line(concat(be(timeS, 8),
      await sign(utf8(`cosignature/v1\ntime ${timeS}\n${body}`)))),
  };
}

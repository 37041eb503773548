// Oblivious HTTP (RFC 9458) and its chunked form (docs/PROTOCOL.md, sections 3 to 5) on @hpke/core.
import * as hpke from '@hpke/core';
import { Reader, be, concat, sized, utf8 } from './bytes.mjs';
import { ChunkKeys, cutChunks, sealChunks } from './chunks.mjs';

const kems = {
  0x0020: { make: () => new hpke.DhkemX25519HkdfSha256(), bytes: 32 },
  0x0010: { make: () => new hpke.DhkemP256HkdfSha256(), bytes: 65 },
};
const aeads = {
  1: { make: () => new hpke.Aes128Gcm(), keyBytes: 16 },
  2: { make: () => new hpke.Aes256Gcm(), keyBytes: 32 },
};

/// kem, kdf and aead by number. Those that WebCrypto has; `keyBytes` is Nk, and n of answers is
/// max(Nk, 12).
export function suiteOf({ kem, kdf, aead }) {
  if (!kems[kem] || kdf !== 1 || !aeads[aead])
    throw new Error(`suite ${kem}/${kdf}/${aead}: this client doesn't have it`);
  const made = new hpke.CipherSuite(
    { kem: kems[kem].make(), kdf: new hpke.HkdfSha256(), aead: aeads[aead].make() });
  return { hpke: made, publicBytes: kems[kem].bytes, keyBytes: aeads[aead].keyBytes };
}

export const suiteBytes = ({ kem, kdf, aead }) => concat(be(kem, 2), be(kdf, 2), be(aead, 2));

/// A sender's context to a public key, in its bytes.
export async function sendTo(suite, publicKey, info) {
  const { hpke: made } = suiteOf(suite);
  const recipientPublicKey = await made.kem.deserializePublicKey(publicKey.slice().buffer);
  const context = await made.createSenderContext({ recipientPublicKey, info });
  return {
    enc: new Uint8Array(context.enc),
    seal: async (plain, aad) => new Uint8Array(await context.seal(plain, aad)),
    export: async (label, bytes) => new Uint8Array(await context.export(utf8(label), bytes)),
  };
}

function readConfig(bytes) {
  const in_ = new Reader(bytes, 'ohttp keys');
  const id = in_.number(1), kem = in_.number(2);
  if (!kems[kem]) return null;
  const pk = in_.take(kems[kem].bytes);
  const pairs = new Reader(in_.sized(), 'ohttp keys');
  in_.end();
  const suites = [];
  do suites.push({ kem, kdf: pairs.number(2), aead: pairs.number(2) });
  while (pairs.left.length > 0);
  return { id, pk, suites, bytes };
}

/// application/ohttp-keys. Keys of a KEM that nobody here knows are passed over; anything wrong
/// refuses the whole list.
export function readKeys(bytes) {
  const in_ = new Reader(bytes, 'ohttp keys');
  const configs = [];
  while (in_.left.length > 0) configs.push(readConfig(in_.sized()));
  return configs.filter((config) => config);
}
export const writeKeys = (configs) => concat(...configs.map((config) => sized(config.bytes)));

/// A key's first suite: nothing is chosen by the client.
export const headOf = (config) => concat(be(config.id, 1), suiteBytes(config.suites[0]));
export const requestInfo = (label, head) => concat(utf8(label), be(0, 1), head);

export const whole = {
  request: 'message/ohttp-req', response: 'message/ohttp-res',
  requestLabel: 'message/bhttp request', responseLabel: 'message/bhttp response',
};
export const chunked = {
  request: 'message/ohttp-chunked-req', response: 'message/ohttp-chunked-res',
  requestLabel: 'message/bhttp chunked request', responseLabel: 'message/bhttp chunked response',
};

/// Seals a binary HTTP request. Gives `body` and its `type`, and what opens the answer: `open` as
/// it comes, for either form.
export async function sealRequest(config, plain, form = whole) {
  const suite = config.suites[0], head = headOf(config);
  const { keyBytes } = suiteOf(suite);
  const sender = await sendTo(suite, config.pk, requestInfo(form.requestLabel, head));
  const seal = (piece, last) => sender.seal(piece, utf8(form === chunked && last ? 'final' : ''));
  const sealed = form === chunked ? await sealChunks(plain, seal) : await seal(plain);
  const n = Math.max(keyBytes, 12);
  const secret = await sender.export(form.responseLabel, n);
  return {
    type: form.request,
    answerType: form.response,
    body: concat(head, sender.enc, sealed),
    open: (pieces) => openAnswer({ form, secret, enc: sender.enc, n, keyBytes, pieces }),
  };
}

async function* openAnswer({ form, secret, enc, n, keyBytes, pieces }) {
  if (form === whole) return yield openWhole({ secret, enc, n, keyBytes, pieces });
  let keys = null;
  for await (const [bytes, last] of cutChunks(pieces, n, 'ohttp answer')) {
    if (keys) yield await keys.open(bytes, last);
    else keys = await ChunkKeys.from(secret, concat(enc, bytes), keyBytes);
  }
}

async function openWhole({ secret, enc, n, keyBytes, pieces }) {
  const parts = [];
  for await (const piece of pieces) parts.push(piece);
  const bytes = concat(...parts);
  const keys = await ChunkKeys.from(secret, concat(enc, bytes.subarray(0, n)), keyBytes);
  return keys.open(bytes.subarray(n));
}

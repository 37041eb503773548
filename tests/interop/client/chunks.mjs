// The chunks of docs/PROTOCOL.md, section 5: each sealed under its number, the last one marked.
import { Pull, concat, utf8, varint } from './bytes.mjs';

export const chunkBytesMax = 16384;
const tagBytes = 16;
const final = utf8('final');

/// AES-GCM under a key and a nonce that HKDF makes of a secret. Counts what it seals or opens.
export class ChunkKeys {
  #next = 0;
  static async from(secret, salt, keyBytes) {
    const root = await crypto.subtle.importKey('raw', secret, 'HKDF', false, ['deriveBits']);
    const expand = async (info, bytes) => new Uint8Array(await crypto.subtle.deriveBits(
      { name: 'HKDF', hash: 'SHA-256', salt, info: utf8(info) }, root, bytes * 8));
    const made = new ChunkKeys();
    made.key = await crypto.subtle.importKey('raw', await expand('key', keyBytes), 'AES-GCM', false,
      ['encrypt', 'decrypt']);
    made.nonce = await expand('nonce', 12);
    return made;
  }
  #parameters(additionalData) {
    const iv = this.nonce.slice();
    const view = new DataView(iv.buffer);
    view.setBigUint64(4, view.getBigUint64(4) ^ BigInt(this.#next++));
    return { name: 'AES-GCM', iv, additionalData };
  }
  async seal(plain, last = false) {
    const how = this.#parameters(last ? final : new Uint8Array(0));
    return new Uint8Array(await crypto.subtle.encrypt(how, this.key, plain));
  }
  async open(sealed, last = false) {
    const how = this.#parameters(last ? final : new Uint8Array(0));
    const plain = await crypto.subtle.decrypt(how, this.key, sealed).catch(() => {
      throw new Error('sealed stream: a chunk does not open; it was changed, moved or cut');
    });
    return new Uint8Array(plain);
  }
}

/// Seals `plain` in full chunks, framed; `seal(chunk, last)` seals each.
export async function sealChunks(plain, seal) {
  const parts = [];
  for (let at = 0, last = false; !last; at += chunkBytesMax) {
    const piece = plain.subarray(at, at + chunkBytesMax);
    last = at + piece.length === plain.length;
    const sealed = await seal(piece, last);
    parts.push(varint(last ? 0 : sealed.length), sealed);
  }
  return concat(...parts);
}

/// Cuts a stream into its sealed chunks, as they come: [chunk, last]. Without the last one the
/// stream was cut off, and that is an error. The nonce in front of it, if any, is `nonceBytes` long
/// and is given first, alone.
export async function* cutChunks(pieces, nonceBytes, what) {
  const source = new Pull(pieces, what);
  try {
    if (nonceBytes > 0) yield [await source.take(nonceBytes), false];
    for (let length = await source.varint(); length > 0; length = await source.varint()) {
      if (length <= tagBytes || length > chunkBytesMax + tagBytes)
        throw new Error(`${what}: a chunk of ${length} bytes`);
      yield [await source.take(length), false];
    }
    const last = await source.rest(chunkBytesMax + tagBytes);
    if (last.length < tagBytes) throw new Error(`${what}: it was cut off`);
    yield [last, true];
  } finally {
    await source.stop();
  }
}

// Bytes: fields, hashes, texts. All of it runs on WebCrypto.
import * as varints from 'quicvarint';
import { base16 } from 'rfc4648';

/// A fetch of which a browser keeps nothing, and to which it adds no more than it must.
export async function fetchFrom(who, url, how = {}) {
  const quiet = { credentials: 'omit', referrerPolicy: 'no-referrer', cache: 'no-store' };
  return fetch(url, { ...quiet, ...how }).catch((cause) => {
    throw new Error(`${who}: not reached; a page's origin must be in its \`origins\``, { cause });
  });
}

export const utf8 = (text) => new TextEncoder().encode(text);
export const textOf = (bytes) => new TextDecoder('utf-8', { fatal: true }).decode(bytes);
export const hex = (bytes) => base16.stringify(bytes).toLowerCase();
export const unhex = (text) => base16.parse(text, { loose: true });
export const varint = (number) => new Uint8Array(varints.encode(number));

export function concat(...parts) {
  const out = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

export function equal(a, b) {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}

/// Which of two comes first, byte by byte.
export function order(a, b) {
  for (let i = 0; i < Math.min(a.length, b.length); ++i) if (a[i] !== b[i]) return a[i] - b[i];
  return a.length - b.length;
}

/// A number of so many bytes, big-endian.
export function be(number, bytes) {
  const out = new Uint8Array(bytes);
  let left = BigInt(number);
  for (let i = bytes; i-- > 0; left >>= 8n) out[i] = Number(left & 255n);
  return out;
}

/// Behind its u16 length.
export const sized = (bytes) => concat(be(bytes.length, 2), bytes);

export async function sha256(...parts) {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', concat(...parts)));
}

export async function verifyEd25519(publicKey, signature, ...message) {
  const key = await crypto.subtle.importKey('raw', publicKey, 'Ed25519', false, ['verify']);
  return crypto.subtle.verify('Ed25519', key, signature, concat(...message));
}

/// Takes fields off the front; what is missing is an error.
export class Reader {
  constructor(bytes, what) {
    this.left = bytes;
    this.what = what;
  }
  take(count) {
    if (count > this.left.length) throw new Error(`${this.what}: it ends too early`);
    const field = this.left.slice(0, count);
    this.left = this.left.subarray(count);
    return field;
  }
  rest() { return this.take(this.left.length); }
  number(bytes) {
    const value = this.take(bytes).reduce((sum, byte) => sum * 256 + byte, 0);
    if (value > Number.MAX_SAFE_INTEGER) throw new Error(`${this.what}: a number is too large`);
    return value;
  }
  sized() { return this.take(this.number(2)); }
  sizedNumber(bytes) {
    const field = new Reader(this.sized(), this.what);
    const value = field.number(bytes);
    field.end();
    return value;
  }
  end() {
    if (this.left.length > 0) throw new Error(`${this.what}: bytes follow its end`);
  }
}

export async function* piecesIn(list) { yield* list; }

/// The pieces of a fetch's body, in browsers, too.
export async function* piecesOf(stream) {
  const reader = stream.getReader();
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value;
  } finally {
    await reader.cancel().catch(() => {}); // whoever stops early takes no more
  }
}

/// Bytes that come in pieces of any size, taken as they are needed.
export class Pull {
  #held = new Uint8Array(0);
  constructor(pieces, what) {
    this.pieces = pieces[Symbol.asyncIterator]();
    this.what = what;
  }
  async #more() {
    const next = await this.pieces.next();
    if (!next.done) this.#held = concat(this.#held, next.value);
    return !next.done;
  }
  /// Whether nothing is left, and nothing will come.
  async ended() {
    while (this.#held.length === 0) if (!await this.#more()) return true;
    return false;
  }
  async take(count) {
    while (this.#held.length < count)
      if (!await this.#more()) throw new Error(`${this.what}: it was cut off`);
    return this.some(count);
  }
  /// What is there of so many bytes.
  some(count) {
    const taken = this.#held.slice(0, count);
    this.#held = this.#held.subarray(taken.length);
    return taken;
  }
  /// All that comes until the end, `max` bytes at most.
  async rest(max) {
    do {
      if (this.#held.length > max) throw new Error(`${this.what}: more than ${max} bytes`);
    } while (await this.#more());
    return this.some(max);
  }
  async varint() {
    const first = await this.take(1);
    const more = await this.take((1 << (first[0] >> 6)) - 1);
    const bytes = concat(first, more);
    return varints.read(new DataView(bytes.buffer), 0).value;
  }
  /// Lets go of whoever makes the pieces.
  async stop() { await this.pieces.return?.(); }
}

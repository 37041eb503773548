// Binary HTTP (RFC 9292): bhttp-js writes requests; what it can't do, reading answers as they come,
// is here.
import { BHttpEncoder } from 'bhttp-js';
import { Pull, concat, piecesIn, textOf } from './bytes.mjs';

/// A request to `path` of the gateway or node that is called `authority`.
export async function encodeRequest(authority, path, { method = 'GET', headers = {}, body } = {}) {
  const request = new Request(`https://${authority}${path}`, { method, headers, body });
  return new BHttpEncoder().encodeRequest(request);
}

/// Zeroes behind it, up to the next of those sizes.
export function pad(message, buckets) {
  const size = buckets.find((bytes) => bytes >= message.length);
  if (!size) throw new Error(`request: ${message.length} bytes; ${buckets.at(-1)} are the most`);
  return concat(message, new Uint8Array(size - message.length));
}

const sectionBytesMax = 64 << 10;

async function readFields(in_, known) {
  const headers = new Headers();
  if (await in_.ended()) return headers;
  const sized = async (from) => textOf(await from.take(await from.varint()));
  const length = await in_.varint();
  if (length > sectionBytesMax) throw new Error(`bhttp: a section of ${length} bytes`);
  if (known) {
    const section = new Pull(piecesIn([await in_.take(length)]), 'bhttp');
    while (!await section.ended()) headers.append(await sized(section), await sized(section));
    return headers;
  }
  let left = sectionBytesMax;
  for (let bytes = length; bytes > 0; bytes = await in_.varint()) {
    const name = textOf(await in_.take(bytes)), value = await sized(in_);
    if ((left -= name.length + value.length) < 0) throw new Error('bhttp: too many fields');
    headers.append(name, value);
  }
  return headers;
}

async function* readChunk(in_, length) {
  while (length > 0) {
    if (await in_.ended()) throw new Error('bhttp: it was cut off');
    const piece = in_.some(length);
    length -= piece.length;
    yield piece;
  }
}

async function* readContent(in_, known) {
  let whole = false;
  try {
    if (!await in_.ended()) {
      let length = await in_.varint();
      for (; length > 0; length = known ? 0 : await in_.varint()) yield* readChunk(in_, length);
    }
    await readFields(in_, known);
    whole = true;
  } finally {
    if (!whole) await in_.stop();
  }
}

async function readPadding(in_) {
  try {
    while (!await in_.ended())
      if (in_.some(1 << 16).some((byte) => byte !== 0)) throw new Error('bhttp: no padding');
  } finally {
    await in_.stop();
  }
}

/// Reads an answer of either form as its pieces come. `content` ends where the answer does; what
/// follows it, and that the pieces have a good end, is `padding`'s to find out.
export async function openParts(pieces) {
  const in_ = new Pull(pieces, 'bhttp');
  const framing = await in_.varint();
  if (framing !== 1 && framing !== 3) throw new Error(`bhttp: framing ${framing} is no answer's`);
  for (;;) {
    const status = await in_.varint();
    const headers = await readFields(in_, framing === 1);
    if (status < 200) continue;
    const content = readContent(in_, framing === 1);
    return { status, headers, content, padding: () => readPadding(in_) };
  }
}

/// The same where nobody waits for the content's end: it is good only once `content` ended.
export async function openResponse(pieces) {
  const { status, headers, content, padding } = await openParts(pieces);
  async function* all() {
    yield* content;
    await padding();
  }
  return { status, headers, content: all() };
}

/// All of a content, `max` bytes at most.
export async function gather(content, max = 32 << 20) {
  const parts = [];
  let left = max;
  for await (const piece of content) {
    if ((left -= piece.length) < 0) throw new Error(`answer: more than ${max} bytes`);
    parts.push(piece);
  }
  return concat(...parts);
}

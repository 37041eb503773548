// The seal to the nodes, their answers, receipts and refusals (docs/PROTOCOL.md, section 8).
import { Reader, be, concat, equal, sha256, utf8, verifyEd25519 } from './bytes.mjs';
import { ChunkKeys, cutChunks, sealChunks } from './chunks.mjs';
import { sendTo, suiteBytes, suiteOf } from './ohttp.mjs';

const version = 1;
export const answerLabel = 'lethe sealed response';

/// What each kind of binding begins with: ver ‖ suite ‖ epoch.
export const sealHead = (suite, epoch) =>
  concat(be(version, 1), suiteBytes(suite), be(epoch, 4));
export const sealInfo = (suite, epoch, id) =>
  concat(utf8('lethe sealed request'), be(0, 1), sealHead(suite, epoch), id);
/// A: of the candidates {id, enc}.
export const bindingOf = (suite, epoch, candidates, tokenHash) => sha256(sealHead(suite, epoch),
  be(candidates.length, 1), ...candidates.flatMap((c) => [c.id, c.enc]), tokenHash);
export const wrapAad = async (binding, chunks) => sha256(binding, await sha256(chunks));

/// SHA-256("lethe node key" ‖ suite ‖ pk ‖ sigpk).
export const nodeKeyId = (suite, pk, sigpk) =>
  sha256(utf8('lethe node key'), suiteBytes(suite), pk, sigpk);

/// Taken apart: {suite, epoch, entries: [{id, enc, wrapped}], chunks}.
export function readSealed(message) {
  const in_ = new Reader(message, 'sealed request');
  if (in_.number(1) !== version) throw new Error('sealed request: another version');
  const suite = { kem: in_.number(2), kdf: in_.number(2), aead: in_.number(2) };
  const { publicBytes, keyBytes } = suiteOf(suite);
  const epoch = in_.number(4), count = in_.number(1);
  const entries = Array.from({ length: count }, () => (
    { id: in_.take(32), enc: in_.take(publicBytes), wrapped: in_.take(keyBytes + 16) }));
  return { suite, epoch, entries, chunks: in_.rest() };
}

/// Seals to `nodes` ({suite, pk, sigpk, id}) what is paid with `token`, in its bytes. The answer
/// must have chunks of `chunkBytes`, if it is not 0.
export async function sealToNodes(plain, nodes, epoch, token, chunkBytes = 0) {
  const { suite } = nodes[0], { keyBytes } = suiteOf(suite), tokenHash = await sha256(token);
  const senders = [];
  for (const node of nodes)
    senders.push(await sendTo(suite, node.pk, sealInfo(suite, epoch, node.id)));
  const candidates = nodes.map((node, i) => ({ ...node, enc: senders[i].enc }));
  const binding = await bindingOf(suite, epoch, candidates, tokenHash);

  const cek = crypto.getRandomValues(new Uint8Array(keyBytes));
  const keys = await ChunkKeys.from(cek, binding, keyBytes);
  const chunks = await sealChunks(plain, (piece, last) => keys.seal(piece, last));
  const aad = await wrapAad(binding, chunks), n = Math.max(keyBytes, 12);
  const parts = [sealHead(suite, epoch), be(nodes.length, 1)];
  for (const [i, c] of candidates.entries()) {
    parts.push(c.id, c.enc, await senders[i].seal(cek, aad));
    c.secret = await senders[i].export(answerLabel, n);
  }
  cek.fill(0);
  const message = concat(...parts, chunks);
  const expected = { tokenHash, requestHash: await sha256(message), epoch, chunkBytes };
  return { message, binding, answer: new NodeAnswer(candidates, expected) };
}

/// How a policy shapes answers.
export function shapeOf({ chunk_bytes: chunkBytes, tick_ms: tickMs }) {
  const valid = chunkBytes === 0 ? tickMs === 0 : chunkBytes >= 256 && chunkBytes <= 8192;
  if (!valid) throw new Error('policy: chunk_bytes and tick_ms are no shape of answers');
  return ['off', 'size', 'size_tick'][(chunkBytes > 0) + (tickMs > 0)];
}

/// What a chunk of one size says: its length, it, and zeroes.
function contentOf(plain) {
  const in_ = new Reader(plain, 'answer');
  const content = in_.take(in_.number(2));
  if (in_.rest().some((byte) => byte !== 0))
    throw new Error("answer: data follows a chunk's padding");
  return content;
}

/// An answer as it comes from one of the candidates ({suite, id, sigpk, enc, secret}).
export class NodeAnswer {
  node = null;
  receipt = null; // once `open` ended
  constructor(candidates, expected) {
    this.candidates = candidates;
    this.expected = expected;
    this.keyBytes = suiteOf(candidates[0].suite).keyBytes;
  }

  /// Gives plaintext. What came before an error is the node's, but may lack its end.
  async* open(pieces) {
    const { chunkBytes } = this.expected;
    let nonce = null, keys = null, chunks = 0;
    for await (const [bytes, last] of cutChunks(pieces, Math.max(this.keyBytes, 12), 'answer')) {
      if (!nonce) {
        nonce = bytes;
        continue;
      }
      chunks += 1;
      if (last && !keys) throw new Error('answer: no chunk names the node that it is from');
      if (chunkBytes && bytes.length !== chunkBytes + 16)
        throw new Error(`answer: a chunk of ${bytes.length - 16} bytes, not ${chunkBytes}`);
      if (last) {
        const signed = await keys.open(bytes, true);
        if (chunkBytes && Math.log2(chunks) % 1 !== 0)
          throw new Error(`answer: ${chunks} chunks are no power of two`);
        this.receipt = await this.#readReceipt(signed);
        continue;
      }
      const first = keys ? null : await this.#openFirst(nonce, bytes);
      keys ??= first.keys;
      const plain = first ? first.plain : await keys.open(bytes);
      yield chunkBytes ? contentOf(plain) : plain;
    }
  }

  /// Finds out who answers: whoever's context opens the chunk must be named in it.
  async #openFirst(nonce, chunk) {
    for (const c of this.candidates) {
      const keys = await ChunkKeys.from(c.secret, concat(c.enc, nonce), this.keyBytes);
      const plain = await keys.open(chunk).catch(() => null);
      if (!plain) continue;
      if (!equal(plain.subarray(0, 32), c.id))
        throw new Error('answer: the node that it names is not the one that sealed it');
      this.node = c;
      return { keys, plain: plain.subarray(32) };
    }
    throw new Error('answer: its first chunk opens for none of the nodes asked');
  }

  async #readReceipt(bytes) {
    const receipt = await verifyReceipt(bytes, this.node.sigpk);
    const { tokenHash, requestHash, epoch } = this.expected;
    if (!equal(receipt.tokenHash, tokenHash) || !equal(receipt.requestHash, requestHash) ||
        receipt.epoch !== epoch)
      throw new Error('receipt: it is for another request');
    return receipt;
  }
}

/// Zeroes may follow a receipt.
export async function verifyReceipt(bytes, sigpk) {
  const in_ = new Reader(bytes, 'receipt');
  const fields = in_.take(112), signature = in_.take(64);
  if (in_.rest().some((byte) => byte !== 0)) throw new Error('receipt: something follows it');
  if (!await verifyEd25519(sigpk, signature, utf8('lethe receipt'), fields))
    throw new Error("receipt: its signature is not the node's");
  const from = new Reader(fields, 'receipt');
  return {
    tokenHash: from.take(32), requestHash: from.take(32), release: from.take(32),
    epoch: from.number(4), arenas: from.number(4), bytesWiped: from.number(8),
  };
}

export const refusalReasons = [
  'other epoch', 'not opened', 'seen', 'bad token', 'full', 'leaving', 'failed'];

/// Of the request with that binding, and no other.
export async function verifyRefusal(bytes, sigpk, binding) {
  const in_ = new Reader(bytes, 'refusal');
  const fields = in_.take(37), signature = in_.take(64);
  in_.end();
  if (!await verifyEd25519(sigpk, signature, utf8('lethe refusal'), fields))
    throw new Error("refusal: its signature is not the node's");
  const from = new Reader(fields, 'refusal');
  if (!equal(from.take(32), binding)) throw new Error('refusal: of another request');
  const epoch = from.number(4), reason = refusalReasons[from.number(1) - 1];
  if (!reason) throw new Error('refusal: its reason is unknown');
  return { epoch, reason };
}

/// The word of a node that was asked, about that request and its epoch; with a 429 it says `full`.
export async function checkRefusal(bytes, { nodes, binding, epoch }, status) {
  const checks = nodes.map((node) => verifyRefusal(bytes, node.sigpk, binding));
  const read = await Promise.any(checks).catch(() => {
    throw new Error('refusal: no node asked signed it');
  });
  if (read.epoch !== epoch)
    throw new Error(`refusal: of epoch ${read.epoch}; the request is of ${epoch}`);
  if (status === 429 && read.reason !== 'full')
    throw new Error('refusal: the node did not say that it is full');
  return read;
}

// The log (docs/PROTOCOL.md, section 10): heads, tiles, entries.
import { base64 } from 'rfc4648';
import { Reader, be, concat, equal, sha256, textOf, utf8, verifyEd25519 } from './bytes.mjs';

export const kinds = ['release', 'roster', 'ohttp-keys', 'issuer-keys', 'policy'];
const tileWidth = 256, clockOffMaxS = 120;
const note01 = 1, cosignature04 = 4;

/// NAME+KEYID+BASE64(algorithm ‖ public key).
export async function readNoteKey(text) {
  const [, name, id, told] = /^([!-*,-~]+)\+([0-9a-f]{8})\+(.+)$/.exec(text) ?? [];
  if (!name) throw new Error('note key: not NAME+KEYID+KEY');
  const bytes = base64.parse(told), algorithm = bytes[0], publicKey = bytes.slice(1);
  const keyId = (await sha256(utf8(name), utf8('\n'), bytes)).slice(0, 4);
  if (publicKey.length !== 32 || !equal(keyId, be(parseInt(id, 16), 4)))
    throw new Error(`note key ${name}: its id is not that of its key`);
  return { name, keyId, algorithm, publicKey };
}

/// {origin, size, root, body, signatures: [{name, keyId, bytes}]}.
export function readNote(text) {
  const [, body, origin, size, root, lines] =
    /^((.+)\n(0|[1-9][0-9]*)\n([A-Za-z0-9+/=]+)\n)\n((?:— .+\n)+)$/.exec(text) ?? [];
  if (!body) throw new Error('note: it has not the form of a head');
  const signatures = lines.trimEnd().split('\n').map((line) => {
    const [, name, encoded] = line.split(' ');
    const bytes = base64.parse(encoded ?? '');
    return { name, keyId: bytes.slice(0, 4), bytes: bytes.slice(4) };
  });
  return { origin, size: Number(size), root: base64.parse(root), body, signatures };
}

const signatureBy = (note, key) =>
  note.signatures.find((s) => s.name === key.name && equal(s.keyId, key.keyId));

/// The log's signature and enough witnesses' (`trust`: {log, witnesses, quorum}, keys as they are
/// read); gives the times of the cosignatures, rising. A wrong signature by a known key refuses
/// all.
export async function verifyNote(note, { log, witnesses, quorum }) {
  if (log.algorithm !== note01 || witnesses.some((w) => w.algorithm !== cosignature04))
    throw new Error('log: a key of the wrong algorithm');
  const own = signatureBy(note, log);
  if (note.origin !== log.name) throw new Error("log: another log's head");
  if (!own || !await verifyEd25519(log.publicKey, own.bytes, utf8(note.body)))
    throw new Error('log: bad signature');
  const times = [];
  for (const witness of witnesses) {
    const made = signatureBy(note, witness);
    if (!made) continue;
    const from = new Reader(made.bytes, 'cosignature'), timeS = from.number(8);
    const said = utf8(`cosignature/v1\ntime ${timeS}\n${note.body}`);
    if (!await verifyEd25519(witness.publicKey, from.rest(), said))
      throw new Error(`log: bad signature of ${witness.name}`);
    times.push(timeS);
  }
  if (times.length < quorum) throw new Error('log: no quorum');
  return times.sort((a, b) => a - b);
}

/// Ages are judged by the witnesses' median, which must not be far from the local clock.
export function checkAge(times, nowS) {
  if (times.length === 0) return nowS;
  const median = times[(times.length - 1) >> 1];
  if (median - nowS > clockOffMaxS) throw new Error('log: clock: set it');
  if (nowS - median > clockOffMaxS) throw new Error('log: stale: ask again');
  return median;
}

export const leafHash = (data) => sha256(be(0, 1), data);
export const nodeHash = (left, right) => sha256(be(1, 1), left, right);

/// A Merkle tree that grows: only its largest whole subtrees, left to right.
export class Frontier {
  size = 0;
  subtrees = [];
  copy() {
    return Object.assign(new Frontier(), { size: this.size, subtrees: [...this.subtrees] });
  }
  async append(leaf) {
    let hash = leaf;
    for (let bits = this.size++; bits % 2 === 1; bits = Math.floor(bits / 2))
      hash = await nodeHash(this.subtrees.pop(), hash);
    this.subtrees.push(hash);
  }
  async root() {
    if (this.size === 0) return sha256();
    let hash = this.subtrees.at(-1);
    for (const left of this.subtrees.slice(0, -1).reverse()) hash = await nodeHash(left, hash);
    return hash;
  }
}

/// ver(u8) = 1 ‖ kind(u8) ‖ epoch(u32) ‖ payload.
export function readEntry(bytes) {
  const in_ = new Reader(bytes, 'log entry');
  if (in_.number(1) !== 1) throw new Error('log entry: another version');
  const kind = kinds[in_.number(1) - 1];
  if (!kind) throw new Error('log entry: its kind is unknown');
  return { kind, epoch: in_.number(4), payload: in_.rest() };
}

/// `tile/entries/x001/234`, `.p/W` behind it where the tile isn't full.
export function entriesPath(index, width) {
  const groups = [String(index % 1000).padStart(3, '0')];
  for (let left = Math.floor(index / 1000); left > 0; left = Math.floor(left / 1000))
    groups.unshift(`x${String(left % 1000).padStart(3, '0')}`);
  return `tile/entries/${groups.join('/')}${width < tileWidth ? `.p/${width}` : ''}`;
}

async function* entriesFrom(fetchPage, first, size) {
  for (let tile = Math.floor(first / tileWidth); tile * tileWidth < size; ++tile) {
    const width = Math.min(tileWidth, size - tile * tileWidth);
    const bundle = new Reader(await fetchPage(entriesPath(tile, width)), 'log: altered');
    for (let i = 0; i < width; ++i) {
      const bytes = bundle.sized();
      if (tile * tileWidth + i >= first) yield bytes;
    }
    bundle.end();
  }
}

/// Each kind's epochs rise by one: anything else is a gap, or proof that the log told two stories.
function takeEntry(newest, entry) {
  const before = newest[entry.kind];
  if (before && entry.epoch !== before.epoch + 1)
    throw new Error(`log: ${entry.epoch <= before.epoch ? 'duplicate' : 'gap'}: ` +
      `${entry.kind} ${entry.epoch} follows ${before.epoch}`);
  newest[entry.kind] = entry;
}

/// Reads a log whole, and later what was added. `fetchPage(path)` gives bytes. Nothing is
/// remembered of a read that was refused.
export class LogReader {
  #tree = new Frontier();
  #note = null;
  newest = {};
  constructor(trust) { this.trust = trust; }

  async read(fetchPage, nowS = Math.floor(Date.now() / 1000)) {
    const note = readNote(textOf(await fetchPage('checkpoint')));
    const times = await verifyNote(note, this.trust);
    if (note.size < this.#tree.size) throw new Error('log: shrank');
    const when = checkAge(times, nowS);
    const tree = this.#tree.copy(), newest = { ...this.newest };
    for await (const bytes of entriesFrom(fetchPage, tree.size, note.size)) {
      await tree.append(await leafHash(bytes));
      takeEntry(newest, readEntry(bytes));
    }
    if (!equal(await tree.root(), note.root))
      throw new Error(note.size === this.#note?.size ? 'log: fork' : 'log: altered');
    this.#tree = tree;
    this.#note = note;
    this.newest = newest;
    return { size: note.size, when };
  }
}

export const entryBytes = ({ kind, epoch, payload }) =>
  concat(be(1, 1), be(kinds.indexOf(kind) + 1, 1), be(epoch, 4), payload);

// Rosters and the draw (docs/PROTOCOL.md, section 9).
import { Reader, equal, order, textOf, verifyEd25519 } from './bytes.mjs';
import { Frontier, leafHash } from './log.mjs';
import { suiteOf } from './ohttp.mjs';
import { nodeKeyId } from './sealed.mjs';

/// A leaf's fields, `signed` being what its identity signed.
export async function readLeaf(bytes) {
  const in_ = new Reader(bytes, 'roster leaf');
  const numbers = new Reader(in_.sized(), 'roster leaf');
  const suite = { kem: numbers.number(2), kdf: numbers.number(2), aead: numbers.number(2) };
  numbers.end();
  const leaf = {
    suite, pk: in_.sized(), sigpk: in_.sized(), identity: in_.sized(),
    modelClass: textOf(in_.sized()), capacity: in_.sizedNumber(4),
    evidenceKind: textOf(in_.sized()), evidenceDigest: in_.sized(),
    notBefore: in_.sizedNumber(8), notAfter: in_.sizedNumber(8),
  };
  const signed = bytes.slice(0, bytes.length - in_.left.length);
  const signature = in_.sized();
  in_.end();
  if (leaf.pk.length !== suiteOf(suite).publicBytes || leaf.capacity === 0)
    throw new Error('roster: a leaf is not one of ours');
  return { ...leaf, id: await nodeKeyId(suite, leaf.pk, leaf.sigpk), signed, signature, bytes };
}

export async function readRoster(bytes) {
  const in_ = new Reader(bytes, 'roster');
  if (in_.number(1) !== 1) throw new Error('roster: another version');
  const roster = { epoch: in_.number(4), leaves: [] };
  for (let left = in_.number(4); left > 0; --left) roster.leaves.push(await readLeaf(in_.sized()));
  in_.end();
  return roster;
}

export const capacityOf = (roster) => roster.leaves.reduce((sum, leaf) => sum + leaf.capacity, 0);

export async function rootOf(roster) {
  const tree = new Frontier();
  for (const leaf of roster.leaves) await tree.append(await leafHash(leaf.bytes));
  return tree.root();
}

/// What the log says of an epoch's roster.
export function readSummary(payload) {
  const in_ = new Reader(payload, 'logged roster');
  const summary = {
    notBefore: in_.number(8), root: in_.take(32), nodes: in_.number(4), capacity: in_.number(8) };
  in_.end();
  return summary;
}

function checkOrder(leaves) {
  for (let i = 1; i < leaves.length; ++i)
    if (order(leaves[i - 1].id, leaves[i].id) >= 0)
      throw new Error('roster: nodes are not in the order of their ids');
  for (const key of ['pk', 'sigpk'])
    if (new Set(leaves.map((leaf) => String(leaf[key]))).size !== leaves.length)
      throw new Error('roster: two nodes have one key');
}

/// A roster as anybody may serve it, against its entry in the log.
export async function verifyRoster(bytes, logged) {
  const roster = await readRoster(bytes), summary = readSummary(logged.payload);
  if (roster.epoch !== logged.epoch || roster.leaves.length !== summary.nodes ||
      capacityOf(roster) !== summary.capacity || !equal(await rootOf(roster), summary.root))
    throw new Error('roster: it is not the one that is logged');
  checkOrder(roster.leaves);
  for (const leaf of roster.leaves) {
    if (!await verifyEd25519(leaf.identity, leaf.signature, leaf.signed))
      throw new Error("roster: a leaf's signature is not its identity's");
    if (summary.notBefore < leaf.notBefore || summary.notBefore >= leaf.notAfter)
      throw new Error('roster: a node is not valid when its epoch begins');
  }
  return { ...roster, notBefore: summary.notBefore };
}

function checkShares(roster, policy) {
  const most = capacityOf(roster) * policy.share_max_permille, sums = new Map();
  for (const { identity, capacity } of roster.leaves) {
    const sum = (sums.get(String(identity)) ?? 0) + capacity;
    sums.set(String(identity), sum);
    if (sum * 1000 > most) throw new Error('roster: one identity has too large a share');
  }
}

/// Whether it is a roster that the logged policy promises; `before` is an earlier one.
export function checkRoster(roster, policy, before = null) {
  if (roster.leaves.length < policy.nodes_min) throw new Error('roster: too few nodes');
  for (const leaf of roster.leaves) {
    if (policy.classes[leaf.modelClass] !== leaf.capacity)
      throw new Error("roster: a node's capacity is not its class's");
    if (!policy.evidence_kinds.includes(leaf.evidenceKind))
      throw new Error('roster: a kind of evidence that the policy does not have');
  }
  checkShares(roster, policy);
  if (!before) return;
  const epochs = roster.epoch - before.epoch;
  if (epochs < 0) throw new Error('roster: it is older than one seen before');
  if (capacityOf(roster) * 1000 > capacityOf(before) * (1000 + policy.growth_max_permille * epochs))
    throw new Error('roster: its capacity grew too fast');
}

const randomU64 = () => crypto.getRandomValues(new BigUint64Array(1))[0];

/// Uniform below `end`, exactly: what does not fit is thrown away.
export function uniformBelow(end, random = randomU64) {
  const mask = (1n << BigInt(BigInt(end - 1).toString(2).length)) - 1n;
  for (;;) {
    const value = random() & mask;
    if (value < BigInt(end)) return Number(value);
  }
}

/// `k` nodes, with replacement, each in exact proportion to capacity.
export function drawNodes(roster, k, random = randomU64) {
  return Array.from({ length: k }, () => {
    let at = uniformBelow(capacityOf(roster), random);
    return roster.leaves.find(({ capacity }) => (at -= capacity) < 0);
  });
}

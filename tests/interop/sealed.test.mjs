// What the client refuses though every signature and seal in it is good.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { be, concat, order, piecesIn, sized, utf8, varint } from './client/bytes.mjs';
import { gather } from './client/bhttp.mjs';
import { checkRoster, readRoster, rootOf, verifyRoster } from './client/roster.mjs';
import { ChunkKeys } from './client/chunks.mjs';
import {
  NodeAnswer, checkRefusal, sealToNodes, shapeOf, verifyReceipt, verifyRefusal,
} from './client/sealed.mjs';
import {
  nodeOf, openAtNode, sealAnswer, signLeaf, signReceipt, signRefusal, signer,
} from './other_side.mjs';

const t0 = 1_800_000_000, epoch = 3, token = new Uint8Array(354).fill(1);
const seeded = (seed) => new Uint8Array(32).fill(seed);
const nodes = await Promise.all([1, 3].map((seed) => nodeOf(seeded(seed), seeded(seed + 1))));
const release = seeded(9);

async function answered(by, as, more = {}) {
  const { message, answer } = await sealToNodes(utf8('asked'), nodes, epoch, token);
  const opened = await openAtNode(by, message, token);
  const receipt = await signReceipt(as, { ...opened, release, arenas: 1, bytesWiped: 5, ...more });
  const content = await sealAnswer(as, opened, [utf8('said')], receipt);
  return { answer, said: () => gather(answer.open(piecesIn([content]))) };
}

test('an answer names the node that sealed it', async () => {
  for (const node of nodes) {
    const { answer, said } = await answered(node, node);
    assert.deepEqual(await said(), utf8('said'));
    assert.equal(answer.node.id, node.id);
  }
  const { said } = await answered(nodes[0], nodes[1]);
  await assert.rejects(said(), /not the one that sealed it/);
});

test('an answer has a chunk before its receipt, and a node that was asked', async () => {
  const { message, answer } = await sealToNodes(utf8('asked'), nodes, epoch, token);
  const opened = await openAtNode(nodes[0], message, token);
  const receipt = await signReceipt(nodes[0], { ...opened, release, arenas: 1, bytesWiped: 5 });
  const empty = await sealAnswer(nodes[0], opened, [], receipt);
  await assert.rejects(gather(answer.open(piecesIn([empty]))), /no chunk names/);
  const other = new NodeAnswer(answer.candidates.slice(1), answer.expected);
  const content = await sealAnswer(nodes[0], opened, [utf8('said')], receipt);
  await assert.rejects(gather(other.open(piecesIn([content]))), /opens for none/);
});

/// An answer of those plaintexts, each behind the node's id or not, to a client that wants `size`.
async function shaped(plains, size = 256, lastBytes = size) {
  const { message, answer } = await sealToNodes(utf8('asked'), nodes, epoch, token, size);
  const opened = await openAtNode(nodes[0], message, token);
  const receipt = await signReceipt(nodes[0], { ...opened, release, arenas: 1, bytesWiped: 5 });
  const nonce = new Uint8Array(16), parts = [nonce];
  const keys = await ChunkKeys.from(opened.secret, concat(opened.enc, nonce), 16);
  for (const [i, plain] of plains.entries()) {
    const sealed = await keys.seal(i === 0 ? concat(nodes[0].id, plain) : plain);
    parts.push(varint(sealed.length), sealed);
  }
  const last = concat(receipt, new Uint8Array(lastBytes - receipt.length));
  parts.push(varint(0), await keys.seal(last, true));
  return gather(answer.open(piecesIn([concat(...parts)])));
}
const chunk = (text, room, length = text.length) =>
  concat(be(length, 2), utf8(text), new Uint8Array(room - 2 - text.length));
const first = (text, length) => chunk(text, 224, length);
const next = (text, length) => chunk(text, 256, length);

test('an answer has the shape that is logged', async () => {
  assert.deepEqual(await shaped([first('a')]), utf8('a'));
  assert.deepEqual(await shaped([first('a'), next(''), next('b')]), utf8('ab'));
  for (const chunks of [2, 4, 5, 6]) {
    const plains = [first('a'), ...Array.from({ length: chunks - 1 }, () => next('b'))];
    await assert.rejects(shaped(plains), new RegExp(`${chunks + 1} chunks are no power of two`));
  }
  await assert.rejects(shaped([chunk('a', 225)]), /a chunk of 257 bytes, not 256/);
  await assert.rejects(shaped([chunk('a', 223)]), /a chunk of 255 bytes, not 256/);
  await assert.rejects(shaped([first('a')], 256, 257), /a chunk of 257 bytes/);
  await assert.rejects(shaped([first('a')], 256, 176), /a chunk of 176 bytes/);
  await assert.rejects(shaped([first('ab', 1)]), /data follows a chunk's padding/);
  await assert.rejects(shaped([first('a', 223)]), /answer/);
});

test('a shape has limits', () => {
  const of = (chunkBytes, tickMs) => shapeOf({ chunk_bytes: chunkBytes, tick_ms: tickMs });
  assert.deepEqual([of(0, 0), of(256, 0), of(8192, 20)], ['off', 'size', 'size_tick']);
  for (const bad of [[0, 20], [255, 0], [8193, 0]]) assert.throws(() => of(...bad), /no shape/);
});

test('a receipt is followed by zeroes alone', async () => {
  const made = await signReceipt(nodes[0], { tokenHash: seeded(1), requestHash: seeded(2), release,
    epoch, arenas: 1, bytesWiped: 2 ** 50 });
  assert.equal((await verifyReceipt(made, nodes[0].sigpk)).bytesWiped, 2 ** 50);
  await verifyReceipt(concat(made, new Uint8Array(3)), nodes[0].sigpk);
  await assert.rejects(verifyReceipt(concat(made, be(1, 2)), nodes[0].sigpk), /follows it/);
  await assert.rejects(verifyReceipt(made, nodes[1].sigpk), /not the node's/);
});

test('a refusal is of one request and one node', async () => {
  const made = await signRefusal(nodes[0], { binding: seeded(5), epoch, reason: 'full' });
  assert.deepEqual(await verifyRefusal(made, nodes[0].sigpk, seeded(5)), { epoch, reason: 'full' });
  await assert.rejects(verifyRefusal(made, nodes[0].sigpk, seeded(6)), /another request/);
  await assert.rejects(verifyRefusal(made, nodes[1].sigpk, seeded(5)), /not the node's/);
});

test('a refusal that is shown is of a node that was asked, its epoch and its reason', async () => {
  const asked = { nodes, binding: seeded(5), epoch };
  const shown = async (by, more, status = 429) => checkRefusal(
    await signRefusal(by, { binding: seeded(5), epoch, reason: 'full', ...more }), asked, status);
  for (const node of nodes) assert.deepEqual(await shown(node, {}), { epoch, reason: 'full' });
  const stranger = await nodeOf(seeded(7), seeded(8));
  await assert.rejects(shown(stranger, {}), /no node asked/);
  await assert.rejects(shown(nodes[0], { binding: seeded(6) }), /no node asked/);
  await assert.rejects(shown(nodes[0], { epoch: epoch + 1 }), /of epoch 4; the request is of 3/);
  await assert.rejects(shown(nodes[0], { epoch: epoch + 1 }, 503), /of epoch 4/);
  await assert.rejects(shown(nodes[0], { reason: 'leaving' }), /did not say that it is full/);
  assert.equal((await shown(nodes[0], { reason: 'leaving' }, 503)).reason, 'leaving');
});

/// A roster of leaves, and what a log would say of it.
async function logged(leaves, capacity = 100 * leaves.length) {
  const bytes = concat(be(1, 1), be(epoch, 4), be(leaves.length, 4), ...leaves.map(sized));
  const root = await rootOf(await readRoster(bytes));
  const payload = concat(be(t0, 8), root, be(leaves.length, 4), be(capacity, 8));
  return { bytes, payload, read: () => verifyRoster(bytes, { kind: 'roster', epoch, payload }) };
}
const identity = await signer(seeded(20));
const leafOf = (node, more = {}) => signLeaf(node, identity,
  { modelClass: 'ember', capacity: 100, notBefore: t0 - 5, notAfter: t0 + 5, ...more });

test('a roster is of its entry, its identities and its time', async () => {
  const sorted = [...nodes].sort((a, b) => order(a.id, b.id));
  const leaves = await Promise.all(sorted.map((node) => leafOf(node)));
  const good = await logged(leaves);
  assert.equal((await good.read()).leaves.length, 2);
  const root = good.payload.map((b, i) => b ^ (i === 20 ? 1 : 0));
  for (const other of [{ epoch, payload: root }, { epoch: 4, payload: good.payload }])
    await assert.rejects(verifyRoster(good.bytes, other), /not the one that is logged/);
  await assert.rejects((await logged(leaves, 201)).read(), /not the one that is logged/);
  await assert.rejects((await logged(leaves.reverse())).read(), /order/);
  await assert.rejects((await logged([leaves[0], leaves[0]])).read(), /order/);
  const forged = leaves[0].map((b, i) => b ^ (i === leaves[0].length - 1 ? 1 : 0));
  await assert.rejects((await logged([forged])).read(), /not its identity's/);
  for (const when of [{ notBefore: t0 + 1 }, { notAfter: t0 }])
    await assert.rejects((await logged([await leafOf(nodes[0], when)])).read(), /not valid/);
});

test('a roster keeps to the policy', async () => {
  const leaf = { capacity: 100, modelClass: 'ember', evidenceKind: 'none', identity: seeded(1) };
  const roster = { epoch: 5, leaves: [leaf, { ...leaf, identity: seeded(2) }] };
  const policy = { nodes_min: 2, classes: { ember: 100 }, evidence_kinds: ['none'],
    share_max_permille: 500, growth_max_permille: 500 };
  const of = (change, before) => () => checkRoster(roster, { ...policy, ...change }, before);
  const before = (capacity, at = 4) => ({ epoch: at, leaves: [{ capacity }] });
  of({})();
  of({}, before(134))();
  assert.throws(of({ nodes_min: 3 }), /too few/);
  assert.throws(of({ classes: { ember: 99 } }), /class/);
  assert.throws(of({ classes: {} }), /class/);
  assert.throws(of({ evidence_kinds: ['tpm2'] }), /evidence/);
  assert.throws(of({ share_max_permille: 499 }), /share/);
  assert.throws(of({}, before(133)), /grew/);
  assert.throws(of({}, before(200, 6)), /older/);
});

// What crosses the private path, as our C++ and this client write it: each opens and verifies what
// the other wrote. `node write_vectors.mjs` writes this client's file anew, LETHE_WRITE_VECTORS=1
// log_private_vectors_test the other.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { hex, piecesIn, sha256, textOf, unhex, utf8 } from './client/bytes.mjs';
import { gather } from './client/bhttp.mjs';
import {
  Frontier, entryBytes, leafHash, readEntry, readNote, readNoteKey, verifyNote,
} from './client/log.mjs';
import { rootOf, verifyRoster } from './client/roster.mjs';
import {
  NodeAnswer, bindingOf, readSealed, refusalReasons, verifyRefusal,
} from './client/sealed.mjs';
import { nodeOf, openAtNode, suite } from './other_side.mjs';

const fileOf = (name) => new URL(`../data/${name}`, import.meta.url);

const flipped = (bytes, at) => bytes.map((byte, i) => (i === at ? byte ^ 1 : byte));

/// `works` for the bytes as they are, and for none of those with a bit changed.
async function onlyAsItIs(bytes, works) {
  await works(bytes);
  for (let at = 0; at < bytes.length; ++at)
    await assert.rejects(works(flipped(bytes, at)), `byte ${at}`);
}

async function caseOf(vectors) {
  const nodes = await Promise.all(vectors.nodes.map(
    (n) => nodeOf(unhex(n.seal_private), unhex(n.sign_private))));
  const token = unhex(vectors.seal.token), message = unhex(vectors.seal.message);
  return { nodes, token, message, epoch: vectors.seal.epoch };
}

for (const name of ['private_vectors.json', 'private_vectors_js.json']) {
  const vectors = JSON.parse(readFileSync(fileOf(name), 'utf8'));

  test(`${name}: a seal opens for each node`, async () => {
    const { nodes, token, message, epoch } = await caseOf(vectors);
    const { entries } = readSealed(message);
    assert.equal(hex(await bindingOf(suite, epoch, entries, await sha256(token))),
      vectors.seal.binding);
    for (const [i, node] of nodes.entries()) {
      assert.equal(hex(node.id), vectors.nodes[i].id);
      assert.equal(hex((await openAtNode(node, message, token)).plain), vectors.seal.plain);
      await assert.rejects(openAtNode(node, message, flipped(token, 353)));
    }
  });

  test(`${name}: an answer opens, with its receipt`, async () => {
    const { nodes, token, message, epoch } = await caseOf(vectors), { answer } = vectors;
    const opened = await Promise.all(nodes.map((node) => openAtNode(node, message, token)));
    const candidates = nodes.map((node, i) => ({ ...node, ...opened[i] }));
    const expected = { tokenHash: await sha256(token), requestHash: await sha256(message), epoch,
      chunkBytes: answer.chunk_bytes };
    await onlyAsItIs(unhex(answer.content), async (content) => {
      const opener = new NodeAnswer(candidates, expected);
      assert.equal(hex(await gather(opener.open(piecesIn([content])))), answer.plain);
      assert.equal(opener.node.id, candidates[answer.node].id);
      const { chunkBytes: _, ...said } = expected;
      assert.deepEqual(opener.receipt, { ...said, release: unhex(answer.release),
        arenas: answer.arenas, bytesWiped: answer.bytes_wiped });
    });
    const moved = new NodeAnswer(candidates, { ...expected, requestHash: await sha256(token) });
    const opening = gather(moved.open(piecesIn([unhex(answer.content)])));
    await assert.rejects(opening, /another request/);
  });

  test(`${name}: a refusal verifies`, async () => {
    const { nodes, epoch } = await caseOf(vectors), { refusal } = vectors;
    await onlyAsItIs(unhex(refusal.bytes), async (bytes) => assert.deepEqual(
      await verifyRefusal(bytes, nodes[refusal.node].sigpk, unhex(vectors.seal.binding)),
      { epoch, reason: refusalReasons[refusal.reason - 1] }));
  });

  test(`${name}: a roster is the logged one`, async () => {
    const { roster } = vectors, logged = readEntry(unhex(roster.entry));
    assert.equal(hex(entryBytes(logged)), roster.entry);
    await onlyAsItIs(unhex(roster.bytes), async (bytes) => {
      const read = await verifyRoster(bytes, logged);
      assert.equal(hex(await rootOf(read)), roster.root);
      assert.equal(read.leaves.length, 3);
    });
  });

  test(`${name}: a head is signed over its entries`, async () => {
    const { log } = vectors;
    const trust = { log: await readNoteKey(log.key), quorum: 2,
      witnesses: await Promise.all(log.witnesses.map(readNoteKey)) };
    await onlyAsItIs(utf8(log.note), async (text) => assert.deepEqual(
      await verifyNote(readNote(textOf(text)), trust), [log.first_time, log.last_time]));
    const tree = new Frontier();
    for (const entry of log.entries) await tree.append(await leafHash(unhex(entry)));
    assert.deepEqual(await tree.root(), readNote(log.note).root);
  });
}

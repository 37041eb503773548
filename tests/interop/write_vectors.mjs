// Writes tests/data/private_vectors_js.json: what this client makes, in the form of our C++'s
// private_vectors.json. vectors.test.mjs and log_private_vectors_test read both.
import { writeFileSync } from 'node:fs';
import { be, concat, hex, sized, unhex, utf8 } from './client/bytes.mjs';
import { Frontier, entryBytes, leafHash } from './client/log.mjs';
import { readRoster, rootOf } from './client/roster.mjs';
import { sealToNodes } from './client/sealed.mjs';
import {
  nodeOf, noteSigner, openAtNode, sealAnswer, signLeaf, signReceipt, signRefusal, signer,
} from './other_side.mjs';

const t0 = 1_800_000_000;

async function written() {
  const seeded = (seed, bytes = 32) => new Uint8Array(bytes).map((_, i) => seed * 31 + i * 7);
  const nodes = [await nodeOf(seeded(1), seeded(2)), await nodeOf(seeded(3), seeded(4))];
  const token = seeded(5, 354), epoch = 77, plain = utf8('asked in JavaScript');
  const { message, binding } = await sealToNodes(plain, nodes, epoch, token);
  const opened = await openAtNode(nodes[0], message, token);
  const receipt = { tokenHash: opened.tokenHash, requestHash: opened.requestHash,
    release: seeded(6), epoch, arenas: 3, bytesWiped: 2 ** 40 + 9 };
  const signed = await signReceipt(nodes[0], receipt);
  const content = await sealAnswer(nodes[0], opened, [utf8('a'), utf8(' piece')], signed, 256);
  return JSON.stringify({
    nodes: nodes.map((n, i) => ({ seal_private: hex(seeded(1 + 2 * i)), id: hex(n.id),
      sign_private: hex(seeded(2 + 2 * i)),
      public: hex(concat(unhex('002000010001'), n.pk, n.sigpk)) })),
    seal: { epoch, plain: hex(plain), token: hex(token), binding: hex(binding),
      message: hex(message) },
    answer: { node: 0, plain: hex(utf8('a piece')), release: hex(receipt.release), arenas: 3, chunk_bytes: 256,
      bytes_wiped: receipt.bytesWiped, content: hex(content) },
    refusal: { node: 1, reason: 6,
      bytes: hex(await signRefusal(nodes[1], { binding, epoch, reason: 'leaving' })) },
    roster: await writtenRoster(seeded),
    log: await writtenLog(seeded),
  }, null, 1) + '\n';
}

async function writtenRoster(seeded) {
  const identity = await signer(seeded(9)), all = [];
  for (let i = 0; i < 3; ++i) {
    const node = await nodeOf(seeded(10 + i), seeded(20 + i));
    const bytes = await signLeaf(node, identity,
      { modelClass: 'ember', capacity: 100 + i, notBefore: t0 - 5, notAfter: t0 + 700 });
    all.push({ id: hex(node.id), bytes });
  }
  all.sort((a, b) => (a.id < b.id ? -1 : 1));
  const bytes = concat(be(1, 1), be(9, 4), be(3, 4), ...all.map((leaf) => sized(leaf.bytes)));
  const root = await rootOf(await readRoster(bytes));
  const payload = concat(be(t0, 8), root, be(3, 4), be(303, 8));
  return { root: hex(root), entry: hex(entryBytes({ kind: 'roster', epoch: 9, payload })),
    bytes: hex(bytes) };
}

async function writtenLog(seeded) {
  const log = await noteSigner('log.js', 1, seeded(30)), tree = new Frontier();
  const witnesses = await Promise.all([0, 1].map((n) => noteSigner(`w-${n}`, 4, seeded(31 + n))));
  const entries = ['release', 'policy', 'roster', 'ohttp-keys', 'issuer-keys'].map(
    (kind) => entryBytes({ kind, epoch: 1, payload: utf8('x') }));
  for (const e of entries) await tree.append(await leafHash(e));
  const body = `log.js\n${tree.size}\n${btoa(String.fromCharCode(...await tree.root()))}\n`;
  const lines = await Promise.all([
    log.sign(body), witnesses[0].cosign(body, t0), witnesses[1].cosign(body, t0 + 3)]);
  return { key: log.text, witnesses: witnesses.map((w) => w.text), first_time: t0,
    last_time: t0 + 3, note: `${body}\n${lines.join('')}`, entries: entries.map(hex) };
}

writeFileSync(new URL('../data/private_vectors_js.json', import.meta.url), await written());

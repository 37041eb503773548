// The client's own checks of a log, and its draw.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { concat, sized, utf8 } from './client/bytes.mjs';
import { Frontier, LogReader, entryBytes, leafHash, readNoteKey } from './client/log.mjs';
import { capacityOf, drawNodes, uniformBelow } from './client/roster.mjs';
import { noteSigner } from './other_side.mjs';

const t0 = 1_800_000_000;
const flipped = (bytes, at) => bytes.map((byte, i) => (i === at ? byte ^ 1 : byte));

/// A log in memory that signs anything: `serve(entries)` is what a reader fetches from.
async function freeLog() {
  const log = await noteSigner('log', 1, new Uint8Array(32).fill(1));
  const witness = await noteSigner('witness', 4, new Uint8Array(32).fill(2));
  const serve = async (entries, nowS = t0) => {
    const tree = new Frontier();
    for (const entry of entries) await tree.append(await leafHash(entry));
    const body = `log\n${entries.length}\n${btoa(String.fromCharCode(...await tree.root()))}\n`;
    const note = `${body}\n${await log.sign(body)}${await witness.cosign(body, nowS)}`;
    return async (path) => {
      if (path === 'checkpoint') return utf8(note);
      const [, index, width] = /^tile\/entries\/(\d{3})(?:\.p\/(\d+))?$/.exec(path);
      const bundle = entries.slice(index * 256, index * 256 + Number(width ?? 256));
      return concat(...bundle.map(sized));
    };
  };
  const trust = { log: await readNoteKey(log.text), quorum: 1,
    witnesses: [await readNoteKey(witness.text)] };
  return { serve, reader: () => new LogReader(trust) };
}
const entry = (kind, epoch, payload = 'x') => entryBytes({ kind, epoch, payload: utf8(payload) });
const rosters = (count) => Array.from({ length: count }, (_, i) => entry('roster', i + 1));

test('a log is read whole, then what was added, over the ends of tiles', async () => {
  const { serve, reader } = await freeLog(), one = reader();
  for (const count of [1, 2, 255, 256, 257, 600]) {
    assert.equal((await one.read(await serve(rosters(count)), t0)).size, count);
    assert.equal(one.newest.roster.epoch, count);
    assert.equal((await reader().read(await serve(rosters(count)), t0)).size, count);
  }
});

test('a log that tells two stories is refused', async () => {
  const { serve, reader } = await freeLog();
  const read = async (...stories) => {
    const one = reader();
    for (const entries of stories) await one.read(await serve(entries), t0);
  };
  await read(rosters(5), rosters(5), rosters(9));
  const twice = [...rosters(3), entry('roster', 3, 'other')];
  await assert.rejects(read(twice), /duplicate/);
  await assert.rejects(read(rosters(3), twice), /duplicate/);
  await assert.rejects(read([entry('roster', 1), entry('roster', 3)]), /gap/);
  await assert.rejects(read(rosters(5), rosters(4)), /shrank/);
  const forked = [entry('roster', 1, 'other'), ...rosters(5).slice(1)];
  await assert.rejects(read(rosters(5), forked), /fork/);
  await assert.rejects(read(rosters(5), [...forked, entry('roster', 6)]), /altered/);
});

test('an old head, an altered entry and a wrong clock are refused', async () => {
  const { serve, reader } = await freeLog(), fetchPage = await serve(rosters(5));
  await reader().read(fetchPage, t0 + 120);
  await assert.rejects(reader().read(fetchPage, t0 + 121), /stale/);
  await assert.rejects(reader().read(fetchPage, t0 - 121), /clock/);
  const altered = async (path) => {
    const bytes = await fetchPage(path);
    return path === 'checkpoint' ? bytes : flipped(bytes, bytes.length - 1);
  };
  await assert.rejects(reader().read(altered, t0), /altered/);
});

test('the draw is proportional to capacity, and exactly so', async () => {
  const leaves = [5, 1, 2].map((capacity) => ({ capacity })), roster = { leaves };
  assert.equal(capacityOf(roster), 8);
  const counts = [0, 0, 0];
  for (let at = 0; at < 8; ++at)
    counts[leaves.indexOf(drawNodes(roster, 1, () => BigInt(at))[0])] += 1;
  assert.deepEqual(counts, [5, 1, 2]);
  const source = [7n, 6n, 5n, 0xfffffffffffffff2n];
  assert.equal(uniformBelow(5, () => source.pop()), 2, 'of the lowest three bits');
  const rest = () => (source.length > 1 ? source.pop() : 4n);
  assert.equal(uniformBelow(5, rest), 4, 'others do not fit');
  assert.equal(uniformBelow(1), 0);
  assert.equal(drawNodes(roster, 3).length, 3);
});

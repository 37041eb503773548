// bench/report --render: limits and shares worked out by hand, documents, pictures, wrong input.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { begin, checkWhole, end, spliced } from '../../bench/reporting/document.mjs';
import {
  attentionFigures, decodeFigures, otherFigures, prefillFigures, smallFigures, streamFigures,
  tensorFigures,
} from '../../bench/reporting/figures.mjs';
import { coresBetween, coresInUse, Measuring } from '../../bench/reporting/measure.mjs';
import { plan } from '../../bench/reporting/plan.mjs';
import { plots } from '../../bench/reporting/plots.mjs';
import { limitsAt, readResults } from '../../bench/reporting/results.mjs';
import { measuredPart } from '../../bench/reporting/tables.mjs';

const file = new URL('results.jsonl', import.meta.url).pathname;
const text = readFileSync(file, 'utf8'), rows = text.trim().split('\n');
const lines = readResults(text, 'results.jsonl');
const folder = mkdtempSync(join(tmpdir(), 'lethe-report-'));
after(() => rmSync(folder, { recursive: true }));
const near = (a, b) => assert.ok(Math.abs(a - b) < 1e-9 * Math.abs(b), `${a} is not ${b}`);
const labelled = (figures, label) => figures.find((f) => f.label === label);
/** The same results with one line replaced. */
const changed = (find, change) => rows.map((row) => {
  const line = JSON.parse(row);
  return find(line) ? change(line) : row;
}).join('\n');

test('one stream is measured by the bytes of its weights', () => {
  const f = labelled(decodeFigures(lines), '1b q8_0');
  near(f.limit, 20); // 1 GB a token, 20 GB/s
  near(f.share, 17.5 / 20);
  near(f.peerShare, 0.5);
  assert.equal(f.reached, true);
  assert.equal(f.judged.agree, 15);
  assert.equal(labelled(decodeFigures(lines), '1b q4_0').reached, false);
});

test('the limit is the better of the probes right before and right after', () => {
  const q4 = lines.find((l) => l.group === 'decode' && l.type === 'q4_0');
  const limits = limitsAt(lines, q4);
  near(limits.read_gb_per_s.best, 20); // 19 before, 20 after
  near(limits.int8_gop_per_s.best, 1100);
  near(limits.read_gb_per_s.apart, 20 / 19);
});

test('a limit that moved carries no claim', () => {
  const f = labelled(decodeFigures(lines), '1b bf16'); // 20 GB/s before, 10 after
  assert.equal(f.noisy, true);
  assert.match(measuredPart(lines), /\| 1b bf16 .* noisy: the limit moved by 2.0x \|/);
  assert.match(measuredPart(lines), /decode of 1b bf16: noisy, nothing is claimed/);
  assert.doesNotMatch(measuredPart(lines), /decode of 1b bf16: 0/);
});

test('what tiles could do is said beside, and is no limit', () => {
  assert.doesNotMatch(measuredPart(lines), /AMX/);
  const tiles = readResults(changed((l) => l.what === 'probe',
    (l) => JSON.stringify({ ...l, tile_gop_per_s: 12922.1 })), 'r');
  assert.match(measuredPart(tiles), /GOP\/s \(vector by vector.*; in AMX's tiles 12922 to 12922\)\./);
  assert.equal(labelled(prefillFigures(tiles), '1b q8_0, 500').share,
    labelled(prefillFigures(lines), '1b q8_0, 500').share);
});

test('tensor arithmetic stands beside exact arithmetic of the same unit', () => {
  assert.doesNotMatch(measuredPart(lines), /Arithmetics that round/);
  const of = (arithmetic, line) => ({ group: 'tensor', arithmetic, who: 'lethe', model: '1b', type: 'bf16',
    ...line });
  const decode = { what: 'decode', streams: 8 }, keys = { what: 'attention_decode', who: undefined };
  const with_tensor = [...lines,
    of('exact', { ...decode, context: 300, tokens_per_second: 40 }),
    of('tensor', { ...decode, context: 290, tokens_per_second: 60 }),
    of('exact', { what: 'prefill', tokens: 512, tokens_per_second: 100 }),
    of('tensor', { what: 'prefill', tokens: 512, tokens_per_second: 450 }),
    of('exact', { ...keys, context: 4096, kv_gb_per_second: 30 }),
    of('exact', { ...keys, context: 16384, kv_gb_per_second: 20 }),
    of('tensor', { ...keys, context: 16384, kv_gb_per_second: 19 }),
    { ...of(undefined, { what: 'prefill', tokens: 512, tokens_per_second: 90 }), who: 'llama.cpp' }];
  const ratios = tensorFigures(with_tensor).map((f) => [f.label, f.ours / f.exact, f.peer]);
  assert.deepEqual(ratios, [['1b bf16, 8 streams', 1.5, undefined], ['1b bf16, prompt of 512', 4.5, 90],
    ['attention, 16384 keys', 0.95, undefined]]);
  assert.match(measuredPart(with_tensor), /\| 1b bf16, prompt of 512 \| tensor \| 450 tokens\/s \| 100 \| 4.50 \| 90.0 \| 5.00 \|/);
});

test('a prompt is measured by the peak its products run on', () => {
  const f = labelled(prefillFigures(lines), '1b q8_0, 500');
  near(f.share, 1.08 / 2); // 1.08e12 operations, 1e12 a second, 2 s
  near(f.withAttention, (1.08 + 0.12) / 2); // 3e10 more at 2.5e11 a second
  near(f.limit, 500 / 1.08);
  near(f.peerShare, 40 / (500 / 1.08));
  assert.equal(f.reached, true);
  near(labelled(prefillFigures(lines), '1b bf16, 500').share, 4 / 6.25); // at the FMA peak
  assert.equal(labelled(prefillFigures(lines), '1b q8_0, 4000').reached, false);
});

test('attention over int8 keys counts at the int8 peak, values twice', () => {
  const over = lines.map((l) => l.what === 'prefill' && l.tokens === 500 ? {...l, kv: 'int8'} : l);
  const f = labelled(prefillFigures(over), '1b q8_0, 500, int8 keys');
  near(f.share, 1.08 / 2);
  near(f.withAttention, (1.08 + 0.045) / 2); // 4.5e10 more at 1e12 a second
});

test('streams together meet the lower of two limits', () => {
  const [one, many] = ['1b q8_0, 1', '1b q4_0, 32'].map((l) => labelled(streamFigures(lines), l));
  near(one.limit, 20 / (1.3 + 0.02)); // weights and the stream's own keys and values
  assert.equal(one.by, 'reading');
  assert.equal(one.aim, 0.6);
  near(many.byReading, 32 * 20 / (0.76 + 0.64));
  near(many.limit, 1000 / 2.47); // products: 2.47e9 operations a token
  assert.equal(many.by, 'products');
  assert.equal(many.aim, 0.5);
  near(many.peer, 32 * 1.2);
});

test('attention is measured by reading or by arithmetic', () => {
  const figures = attentionFigures(lines);
  near(labelled(figures, 'decode, 4096 keys, f32').share, 0.75);
  near(labelled(figures, 'prompt of 4096, f32').share, 120 / 250);
});

test('a small model is compared by the medians of turns', () => {
  near(smallFigures(lines)[0].share, 100 / 70);
});

test('ranks stand beside a copy or sockets, and processes beside threads', () => {
  const part = measuredPart(lines);
  assert.match(part, /\| threads of a process \| 16 KiB \| 1\.60 \|.*\| 0\.40 \| 0\.25 \|/);
  assert.match(part, /\| processes, sealed links \| 4 MiB \| 4000 \|.*\| 2000 \| 0\.50 \|/);
  assert.match(part, /\| ember \| 1 \| threads of a process \| 220 \| 210 \| 230 \|  \|/);
  assert.match(part, /\| ember \| 2 \| processes, sealed links \| 300 \|.*\| 1\.20 \|/);
});

test('ranks are slower beyond a hundredth, or beyond what threads themselves vary by', () => {
  const slower = (ratio, ranks, p90) => {
    const at = { decode_ratio: ratio, decode_ms_ranks: ranks, decode_ms_threads_p90: p90 };
    const changed = lines.map((l) => (l.what === 'ranks' ? { ...l, ...at } : l));
    return !otherFigures(changed).ranks[0].decode;
  };
  assert.equal(slower(1, 100, 99), false);
  assert.equal(slower(0.99, 101, 101), false);
  assert.equal(slower(0.99, 101, 100.9), true);
  assert.equal(slower(0.989, 101, 105), true);
});

test('a prompt over int8 keys is a figure of its own', () => {
  const prompt = lines.find((l) => l.what === 'prefill' && l.who === 'lethe');
  const at = lines.indexOf(prompt);
  const both = [...lines.slice(0, at), { ...prompt, kv: 'int8' }, ...lines.slice(at)];
  const labels = prefillFigures(both).map((f) => f.label);
  assert.ok(labels.includes(`${prompt.model} ${prompt.type}, ${prompt.tokens}`));
  assert.ok(labels.includes(`${prompt.model} ${prompt.type}, ${prompt.tokens}, int8 keys`));
});

test('what has no limit is judged by its aim', () => {
  const f = otherFigures(lines);
  assert.equal(f.ranks[0].reached, false);
  assert.deepEqual(f.steps.map((s) => s.reached), [true, undefined]);
  const part = measuredPart(lines);
  assert.match(part, /\| 1 \| 10\.0 \| 8\.00 \| 1\.25 \|.*\| \*\*no\*\* \|/);
  assert.match(part, /\| 8 \| 40\.0 \| 10\.0 \| 4\.00 \|.*\| yes \|/);
  assert.match(part, /210 ns \(p10 105, p90 420\) for 2 threads\./);
  assert.match(part, /\| 1b q8_0 \| 1\.20 \| 1\.5 \| yes \|/);
  assert.match(part, /\| embedded cluster \| 1\.10 \| 1 \| \*\*no\*\* \|/);
  assert.match(part, /\| ember \| q8_0 \| 4000 \| 0\.000015 \| 99\.62 % \| 99\.5 % \| yes \|/);
  assert.match(part, /\| q8_0 \| 897 \| 1000 \| 89\.70 % \| 0\.30 \| 0\.5 \| yes \|/);
  assert.match(part, /\| llama-spm \| 12\.0 \| 22\.0 \| \*\*no\*\* \|/); // with two threads
  assert.match(part, /\| top_k \| 8 \| 41\.0 \| 2,?500 \| 2\.50 % \| 2 % \| \*\*no\*\* \|/);
  assert.match(part, /\| top_k \| 64 \| 41\.0 \| 41\.0 \| – \| 2 % \|  \|/);
});

test('a throughput that no window was found for is left out, and that is said', () => {
  const some = lines.map((l) => l.what === 'serving' && l.who === 'llama.cpp' && l.clients === 8
    ? {...l, tokens_per_second: null} : l);
  const text = some.map((l) => JSON.stringify(l)).join('\n');
  const read = readResults(text, 'results'), part = measuredPart(read);
  assert.match(part, /\| 8 \| 40\.0 \|  \|  \|.*\| never were all busy at once \|/);
  assert.match(part.slice(0, part.indexOf('### Decode')),
               /- serving, 8 clients: never were all busy at once, nothing is claimed\n/);
  assert.doesNotMatch(plots(read).serving.toString(), /NaN|null|undefined/);
  const wrong = text.replace('"who":"lethe","clients":1,"tokens_per_second":10', '"who":"lethe","clients":1');
  assert.throws(() => readResults(wrong, 'results'), /no number or null "tokens_per_second"/);
});

test('a group that was not measured is said to be missing', () => {
  const part = measuredPart(lines.filter((l) => l.group !== 'start' && l.group !== 'tokenizing'));
  assert.match(part, /### Start\n\nNot measured\./);
  assert.match(part, /### Tokenizing\n\nNot measured\./);
});

test('every figure that misses its aim is said to', () => {
  const part = measuredPart(lines);
  const falls = part.slice(part.indexOf('### What falls'), part.indexOf('### Decode'));
  for (const what of ['decode of 1b q4_0: 0.50 of 0.8', 'prompt, 1b q8_0, 4000: 0.40 of 0.5',
    'streams, 1b q4_0, 2: 0.56 of 0.6', 'attention, decode, 4096 keys, int8: 0.30 of 0.7',
    'ranks against threads', 'serving, 1 clients', 'start, embedded cluster: 1.10 s of 1',
    'same top token, outliers in q8_0: 97.00 %', 'tokenizing, llama-spm: 12.0 MB/s of prose',
    'sampling, top_k, 8 rows: 2.50 % of a step, of 2 %'])
    assert.ok(falls.includes(what), what);
  assert.equal(falls.split('sampling, ').length, 2, 'others reach it, or have no step beside them');
  assert.ok(!falls.includes('1b q8_0:'));
});

test('pictures show every figure and can be read on both grounds', () => {
  const drawn = plots(lines);
  assert.deepEqual(Object.keys(drawn), ['decode', 'prefill', 'streams', 'attention', 'serving']);
  for (const [name, svg] of Object.entries(drawn)) {
    assert.doesNotMatch(svg, /NaN|undefined|Infinity/, name);
    assert.match(svg, /prefers-color-scheme: dark/);
    assert.match(svg, /class="ground"/);
  }
  for (const { label } of decodeFigures(lines))
    assert.ok(drawn.decode.includes(`>${label}<`), label);
  assert.equal(drawn.streams.match(/<circle [^>]*class="ours/g).length, 13); // and the legend's
  assert.equal(drawn.decode.match(/class="ours noisy"/g).length, 2); // and the legend's
});

test('a name of the outside is escaped in a picture', () => {
  const other = readResults(changed((l) => l.type === 'q8_0' && l.group === 'decode',
    (l) => JSON.stringify({ ...l, type: '<q8>' })), 'r');
  assert.match(plots(other).decode, />1b &#60;q8&#62;</);
});

test('a busy machine and a quick run are said to be such', () => {
  const part = (more) => measuredPart([{ ...lines[0], ...more }, ...lines.slice(1)]);
  assert.doesNotMatch(part({}), /busy|quick/);
  assert.match(part({ load: 1.2 }), /load at the start 1\.2; .*busy with other things/);
  assert.match(part({ quick: true }), /A quick run with few tokens/);
});

test('text around the measured part stays', () => {
  const before = `# A\n\nmine\n\n${begin}\nold\n${end}\n\nmine, too\n`;
  const once = spliced(before, 'new', 'page');
  assert.equal(once, `# A\n\nmine\n\n${begin}\n\nnew\n\n${end}\n\nmine, too\n`);
  assert.equal(spliced(once, 'new', 'page'), once);
  assert.throws(() => spliced('# A\n', 'new', 'page'), /page: has 0 times "<!-- measured: begins/);
  assert.throws(() => spliced(`${before}${end}`, 'new', 'page'), /page: has 2 times/);
  assert.throws(() => spliced(`${end}${begin}`, 'new', 'page'), /ends before it begins/);
});

test('wrong results are refused with their line', () => {
  const refused = (wrong, why) => assert.throws(() => readResults(wrong, 'r.jsonl'), why);
  refused(`${rows[0]}\n${rows[1]}\nthis is nothing\n`, /r\.jsonl:3: is no line of JSON: this is/);
  refused(`${rows[0]}\n[1]\n`, /r\.jsonl:2: is no object/);
  refused(rows.slice(1).join('\n'), /r\.jsonl:1: the first line must say where and when/);
  refused('', /r\.jsonl:1: the first line/);
  const at = rows.findIndex((r) => r.includes('"decode"')) + 1;
  const decode = (l) => l.what === 'decode';
  refused(changed(decode, ({ tokens_per_second: _, ...l }) => JSON.stringify(l)),
    new RegExp(`r\\.jsonl:${at}: "decode" has no number "tokens_per_second"`));
  refused(changed(decode, ({ weight_bytes: _, ...l }) => JSON.stringify(l)),
    new RegExp(`r\\.jsonl:${at}: "decode" has no number "weight_bytes"`));
  refused(changed(decode, ({ group: _, ...l }) => JSON.stringify(l)),
    new RegExp(`r\\.jsonl:${at}: "decode" has no string "group"`));
  const unprobed = readResults(rows.filter((r) => !r.includes('"probe"')).join('\n'), 'r');
  assert.throws(() => measuredPart(unprobed), /no probe before this line/);
});

test('a document is only made of a whole run', () => {
  checkWhole(lines, 'r');
  assert.throws(() => checkWhole(lines.filter((l) => l.group !== 'streams'), 'r'),
    /r: has no line of group streams;/);
  assert.throws(() => checkWhole([{ ...lines[0], quick: true }, ...lines.slice(1)], 'r'), /quick/);
});

test('every group that a document needs is in the plan, with a file for its model', () => {
  const units = plan({ root: '/nowhere', threads: 2, quick: false });
  for (const group of ['decode', 'prefill', 'streams', 'attention', 'small', 'ranks', 'step'])
    assert.ok(units.some((u) => u.group === group), group);
  const types = units.filter((u) => u.group === 'decode').map((u) => u.tags.type);
  assert.deepEqual(types, ['q8_0', 'bf16', 'q4_0', 'q4_k_m', 'f32']);
});

const program = new URL('../../bench/report', import.meta.url).pathname;
const report = (...args) => spawnSync(program, args, { encoding: 'utf8' });

test('load is what cores did, not what they did not', () => {
  const reading = (...cores) => cores.map(([user, nice, sys, idle, irq]) =>
    ({ times: { user, nice, sys, idle, irq } }));
  const before = reading([100, 10, 20, 500, 3], [0, 0, 0, 700, 0]);
  const after = reading([800, 60, 120, 650, 9], [250, 0, 0, 1450, 0]);
  assert.equal(coresBetween(before, after, 1000), 1.1);
  assert.equal(coresBetween(before, before, 1000), 0);
});

test('a probe stands right behind each program of ours', async () => {
  const root = mkdtempSync(join(tmpdir(), 'lethe-report-'));
  after(() => rmSync(root, { recursive: true }));
  const bin = join(root, 'build/release/bench');
  mkdirSync(bin, { recursive: true });
  writeFileSync(join(bin, 'probe'), '#!/bin/sh\necho \'{"what":"probe"}\'\n', { mode: 0o755 });
  const say = (what, who) => ({ argv: ['echo', JSON.stringify({ what })], tags: { who } });
  const unit = (...commands) => ({ group: 'g', name: 'a unit', needs: [], tags: {}, commands });
  const results = join(root, 'results.jsonl');
  const measuring = new Measuring({ root, results, threads: 1, quick: true });
  await measuring.run([unit(say('ours', 'lethe'), say('more', 'lethe'), say('theirs', 'llama.cpp'),
                            say('judged', 'lethe')), unit(say('other'))]);
  const said = readFileSync(results, 'utf8').trim().split('\n').map((l) => JSON.parse(l).what);
  assert.deepEqual(said, ['context', 'probe', 'ours', 'probe', 'more', 'probe', 'theirs', 'judged',
                          'probe', 'other', 'probe']);
  const failing = { ...unit({ argv: ['/bin/false'], tags: {} }), may_fail: true };
  await measuring.run([failing, unit(say('other'))]);
  const more = readFileSync(results, 'utf8').trim().split('\n').slice(said.length);
  assert.deepEqual(more.map((l) => JSON.parse(l).what), ['probe', 'probe', 'other', 'probe']);
});

test('what reading limits is measured again until the probes agree, four times at most', async () => {
  const root = join(folder, 'again'), bin = join(root, 'build/release/bench');
  mkdirSync(bin, { recursive: true });
  const results = join(root, 'results.jsonl'), left = join(root, 'left');
  // Takes the next number of a file for what it reads; the last one stays.
  writeFileSync(join(bin, 'probe'), `#!/bin/sh
read first rest < ${left}
[ -z "$rest" ] || echo "$rest" > ${left}
printf '{"what":"probe","read_gb_per_s":%s}\\n' "$first"
`, { mode: 0o755 });
  const say = (what, reads) =>
    ({ argv: ['/bin/sh', '-c', `echo '{"what":"${what}"}'`], tags: {}, reads });
  const measured = async (probes, ...commands) => {
    writeFileSync(left, probes.join(' ') + '\n');
    await new Measuring({ root, results, threads: 1, quick: true })
      .run([{ group: 'step', name: 'unit', needs: [], tags: {}, commands }]);
    return readFileSync(results, 'utf8').trim().split('\n').map((l) => JSON.parse(l).what);
  };
  const again = ['again', 'probe'];
  assert.deepEqual(await measured([20, 31, 30], say('ours', true)),
                   ['context', 'probe', ...again, 'ours', 'probe']);
  assert.deepEqual(await measured([20, 30], say('ours', true)),
                   ['context', 'probe', 'ours', 'probe']);
  assert.deepEqual(await measured([20, 31], say('ours', false)),
                   ['context', 'probe', 'ours', 'probe']);
  assert.deepEqual(await measured([20, 40, 20, 40, 20, 40], say('ours', true)),
                   ['context', 'probe', ...again, ...again, ...again, 'ours', 'probe']);
  const more = rows.toSpliced(2, 0, '{"what":"again","group":"decode","apart":1.7}').join('\n');
  assert.match(measuredPart(readResults(more, 'r')), /claimed\. What .* measured again 1 time for/);
  assert.doesNotMatch(measuredPart(lines), /measured again/);
});

test('a program that spins is seen as load', async () => {
  const spinning = spawn(process.execPath, ['-e', 'console.log(1); for (;;);']);
  try {
    await new Promise((done) => spinning.stdout.once('data', done));
    const cores = coresInUse();
    assert.ok(cores > 0.2 && cores < availableParallelism() + 0.2, `${cores} cores in use`);
  } finally {
    spinning.kill('SIGKILL');
  }
});

test('the program renders, and says what is wrong with its arguments', () => {
  const made = report('--render', file, '--to', folder);
  assert.equal(made.status, 0, made.stderr);
  assert.ok(readFileSync(join(folder, 'performance.md'), 'utf8').includes('### Prompts'));
  for (const [name, svg] of Object.entries(plots(lines)))
    assert.equal(readFileSync(join(folder, 'performance', `${name}.svg`), 'utf8'), svg);
  const bad = join(folder, 'bad.jsonl');
  writeFileSync(bad, `${rows[0]}\n{"what":\n`);
  for (const [args, why] of [
    [['--render', bad, '--to', folder], /^report: .*bad\.jsonl:2: is no line of JSON/],
    [['--render', join(folder, 'none.jsonl')], /^report: ENOENT.*none\.jsonl/],
    [['--only', 'everything'], /^report: --only everything: is no group; one of decode, prefill/],
    [['--threads', '0'], /^report: --threads 0: a whole number from 1 to 256/],
    [['--fast'], /^report: Unknown option '--fast'/]]) {
    const ended = report(...args);
    assert.equal(ended.status, 1, args.join(' '));
    assert.match(ended.stderr, why);
  }
  assert.match(report('--help').stdout, /--render FILE/);
});

// The measured part of docs/performance.md.
import {attentionFigures, decodeFigures, otherFigures, prefillFigures, smallFigures, streamFigures,
        tensorFigures} from "./figures.mjs";
import {noisyFrom} from "./results.mjs";

const number = (value) => value === undefined ? "" : value >= 100 ? value.toFixed(0)
                          : value >= 10 ? value.toFixed(1) : value.toFixed(2);
const ratio = (a, b) => (b ? (a / b).toFixed(2) : "");
const verdict = (f) => f.noisy ? `noisy: the limit moved by ${f.apart.toFixed(1)}x`
                       : f.reached === undefined ? "" : f.reached ? "yes" : "**no**";
const aim = (value) => (value === undefined ? "" : String(value));
/** Twice the throughput at no worse p95; undefined where one side is not measured. */
const serves = (a, b) => a?.tokens_per_second && b?.tokens_per_second
  ? a.tokens_per_second >= 2 * b.tokens_per_second && a.ttft_p95_ms <= b.ttft_p95_ms &&
    a.gap_p95_ms <= b.gap_p95_ms : undefined;
const plot = (name, says) => `\n\n![${says}](performance/${name}.svg)`;

/** What a table says, and the table, or a word that there is none. */
function section(title, says, head, rows, caption = "") {
  if (rows.length === 0) return `### ${title}\n\nNot measured.`;
  const line = (cells) => `| ${cells.join(" | ")} |`;
  return [`### ${title}\n\n${says}\n`, line(head), line(head.map(() => "---")),
          ...rows.map(line)].join("\n") + caption;
}

function context(c) {
  return `${c.cpu}, ${c.cores} cores, ${c.threads} threads, Linux ${c.kernel}; ${c.date}, commit ` +
    `${c.commit}${c.changed ? " with changes that are not committed" : ""}; load at the start ` +
    `${c.load.toFixed(1)}; llama.cpp is ${c.peer}.` +
    (c.load >= c.cores / 2 ? " **The machine was busy with other things.**" : "") +
    (c.quick ? " **A quick run with few tokens: for trying, not for reading.**" : "");
}

function probes(lines) {
  const span = (name) => {
    const all = lines.filter((l) => l.what === "probe").map((l) => l[name]);
    return `${number(Math.min(...all))} to ${number(Math.max(...all))}`;
  };
  const floats = lines.some((l) => l.tile_gflop_per_s !== undefined);
  const tiles = lines.some((l) => l.tile_gop_per_s === undefined && l.what === "probe") ? ""
    : ` (vector by vector, as the aims mean it; in AMX's tiles ${span("tile_gop_per_s")}` +
      `${floats ? `, bf16 ${span("tile_gflop_per_s")} GFLOP/s` : ""})`;
  return `${lines.filter((l) => l.what === "probe").length} probes in this run: reading ` +
    `${span("read_gb_per_s")} GB/s, FMA ${span("fma_gflop_per_s")} GFLOP/s, int8 ` +
    `${span("int8_gop_per_s")} GOP/s${tiles}. A limit is the better of the probes right before and ` +
    `after; where those differ by more than ${noisyFrom}x the figure is noisy, and nothing is ` +
    "claimed." + again(lines.filter((l) => l.what === "again").length);
}
const again = (times) => times === 0 ? "" : ` What reading limits was measured again ${times} ` +
  `time${times === 1 ? "" : "s"} for that reason.`;

function decode(lines) {
  const same = (f) => f.judged === undefined ? ""
    : `${f.judged.agree} of ${f.judged.of}, ${f.judged.worst_gap.toFixed(2)} nats`;
  return section("Decode of one stream",
    "Tokens a second; the share is the weights' bytes a second over the read bandwidth. Same " +
    "answers: how many of llama.cpp's greedy tokens are our likeliest, and by how much the " +
    "others are less likely to us at most.",
    ["weights", "MB a token", "Lethe", "llama.cpp", "ratio", "limit", "share", "aim", "reached",
     "same answers"],
    decodeFigures(lines).map((f) => [
      f.label, f.megabytes.toFixed(0), number(f.ours), number(f.peer), ratio(f.ours, f.peer),
      number(f.limit), f.share.toFixed(2), aim(f.aim), verdict(f), same(f)]),
    plot("decode", "Decode of one stream as a share of the read bandwidth"));
}

function prefill(lines) {
  return section("Prompts",
    "Tokens a second; the share is of the peak that the weights' products run on. \"With " +
    "attention\" counts attention's operations, too: at the FMA peak, over int8 keys at the int8 " +
    "peak, values twice (a weight has two bytes). The last column is attention's part of the " +
    "time. Long prompts of the large model would take llama.cpp minutes " +
    "and are left out.",
    ["weights, tokens", "Lethe", "llama.cpp", "ratio", "limit", "peak", "share", "aim", "reached",
     "with attention", "attention"],
    prefillFigures(lines).map((f) => [
      f.label, number(f.ours), number(f.peer), ratio(f.ours, f.peer), number(f.limit), f.peak,
      f.share.toFixed(2), aim(f.aim), verdict(f), f.withAttention.toFixed(2),
      `${(f.attentionShare * 100).toFixed(0)} %`]),
    plot("prefill", "Prompts as a share of the peak"));
}

function streams(lines) {
  return section("Streams together",
    "Tokens a second of all streams; the limit is the lower of what reading (weights once, each " +
    "stream's keys and values) and products with weights allow. All begin with 256 tokens; those " +
    "that stay for smaller numbers of streams have more by then. llama.cpp is measured with 32, " +
    "8 and 1.",
    ["weights, streams", "context", "Lethe", "llama.cpp", "ratio", "limit", "by", "share", "aim",
     "reached"],
    streamFigures(lines).map((f) => [
      f.label, f.context, number(f.ours), number(f.peer), ratio(f.ours, f.peer), number(f.limit),
      f.by, f.share.toFixed(2), aim(f.aim), verdict(f)]),
    plot("streams", "A roofline: streams together, and their limits"));
}

function attention(lines) {
  return section("Attention",
    "The operation alone, all layers' keys and values in pages; decode against the read " +
    "bandwidth, a prompt against the FMA peak (whose operations over int8 keys are integers').",
    ["what, type of cache", "measured", "limit", "share", "of the FMA peak", "aim", "reached"],
    attentionFigures(lines).map((f) => [
      f.label, `${number(f.ours)} ${f.unit}`, number(f.limit), f.share.toFixed(2),
      (f.ofPeak ?? f.share).toFixed(2), aim(f.aim), verdict(f)]),
    plot("attention", "Attention as a share of its limit"));
}

function small(lines) {
  return section("A small model", "Decode of one stream, medians of turns with llama.cpp.",
    ["weights", "Lethe", "llama.cpp", "ratio", "aim", "reached"],
    smallFigures(lines).map((f) => [
      f.label, number(f.ours), number(f.peer), number(f.share), aim(f.aim), verdict(f)]));
}

function tensor(lines) {
  const figures = tensorFigures(lines);
  if (figures.length === 0) return [];
  return [section("Arithmetics that round",
    "`arithmetic = \"tensor\"` (tiles) and `\"pairs\"`: weights, keys and values of bf16, x and " +
    "queries rounded to bf16. Beside exact arithmetic in the same minutes; keys and values are " +
    "bf16 in all.",
    ["what", "arithmetic", "so", "exact", "ratio", "llama.cpp", "ratio"],
    figures.map((f) => [f.label, f.arithmetic, `${number(f.ours)} ${f.unit}`, number(f.exact),
                        ratio(f.ours, f.exact), number(f.peer), ratio(f.ours, f.peer)]))];
}

const yes = (reached) => reached === undefined ? "" : reached ? "yes" : "**no**";

function ranks({ranks: all, barriers}) {
  const rows = all.flatMap((l) => [
    ["decode", l.decode_ms_ranks, l.decode_ms_threads, l.decode_ms_threads_p90, l.decode_ratio,
     l.decode],
    [`prompt of ${l.prompt}`, l.prefill_ms_ranks, l.prefill_ms_threads, l.prefill_ms_threads_p90,
     l.prefill_ratio, l.prefill],
  ].map(([what, a, b, p90, r, reached]) =>
    [what, `${number(a)} ms`, `${number(b)} (${number(p90)}) ms`, r.toFixed(3), "1.0",
     yes(reached)]));
  const cost = barriers.map((l) =>
    `${number(l.ns)} ns (p10 ${number(l.ns_p10)}, p90 ${number(l.ns_p90)}) for ${l.threads} ` +
    `thread${l.threads === 1 ? "" : "s"}`);
  return section("Ranks",
    "Ranks that share each layer, in one process, against one rank with as many threads (a tenth " +
    "above), by turns. Reached: no slower; or by a hundredth at most, and not slower than those. " +
    `A barrier takes ${cost.join(", ")}.`,
    ["what", "ranks", "threads", "ratio", "aim", "reached"], rows);
}

function steps({steps: all}) {
  return section("A step of Ember besides arithmetic",
    "Through scheduler, engine and request actors, every piece sealed; rest is a step's time " +
    "without its operations.",
    ["streams", "step", "of it arithmetic", "rest (p90)", "aim", "reached"],
    all.map((l) => [
      l.streams, `${number(l.step_us)} µs`, `${number(l.arithmetic_us)} µs`,
      `${number(l.rest_us)} (${number(l.rest_us_p90)}) µs`, l.streams === 1 ? "30 µs" : "",
      yes(l.reached)]));
}

const neverBusy = "never were all busy at once";

function servingRow(all, clients) {
  const [a, b] = ["lethe", "llama.cpp"].map((who) =>
    all.find((l) => l.who === who && l.clients === clients));
  const both = (name) => `${number(a?.[name])} / ${number(b?.[name])}`, good = serves(a, b);
  return [clients, number(a?.tokens_per_second), number(b?.tokens_per_second),
          ratio(a?.tokens_per_second, b?.tokens_per_second), both("ttft_p50_ms"),
          both("ttft_p95_ms"), both("gap_p50_ms"), both("gap_p95_ms"),
          a && b && good === undefined ? neverBusy : yes(good)];
}

function serving({serving: all}) {
  return section("Serving",
    "Through the API, streamed. Throughput of all clients in tokens a second; times are Lethe's " +
    "/ llama.cpp's, in milliseconds. The aim is twice the throughput at no worse p95.",
    ["clients", "Lethe", "llama.cpp", "ratio", "first token, p50", "p95", "between tokens, p50",
     "p95", "reached"],
    [...new Set(all.map((l) => l.clients))].map((clients) => servingRow(all, clients)),
    plot("serving", "Throughput through the API"));
}

function start({starts}) {
  return section("Start",
    "From the start of the process to its first token, the file in the page cache.",
    ["what", "seconds", "aim", "reached"],
    starts.map((l) => [l.which, number(l.seconds), aim(l.aim), yes(l.reached)]));
}

const percent = (share) => `${(share * 100).toFixed(2)} %`;

function accuracy({accuracy: all, evaluation}) {
  return section("Accuracy",
    "Against f32: mean KL divergence, and how often the likeliest token is the same.",
    ["model", "type", "positions", "KL, nats", "same top token", "aim", "reached"],
    all.map((l) => [l.model, l.type, l.positions, l.kl.toPrecision(2), percent(l.top1),
                    l.reached === undefined ? "" : "99.5 %", yes(l.reached)])) + "\n\n" +
  section("Answers of Ember's evaluation",
    "Greedy answers that are right; points lost are against f32.",
    ["type", "right", "of", "share", "points lost", "aim", "reached"],
    evaluation.map((l) => [l.type, l.score, l.of, percent(l.score / l.of),
                           l.lost === undefined ? "" : (l.lost * 100).toFixed(2),
                           l.reached === undefined ? "" : "0.5", yes(l.reached)]));
}

function tokenizing({tokenizing: all}) {
  const texts = [...new Set(all.flatMap((t) => Object.keys(t.speeds)))];
  return section("Tokenizing",
    `Megabytes a second with ${all[0]?.threads} threads, each with a text of its own; the aim is ` +
    "20 for every kind of text.",
    ["tokenizer", ...texts, "reached"],
    all.map((t) => [t.name, ...texts.map((text) => number(t.speeds[text])), yes(t.reached)]));
}

function sampling({sampling: all}) {
  return section("Sampling",
    "All rows of a batch with the same features, at a vocabulary of 128,256, drawn by " +
    `${all[0]?.threads} threads, as a share of the 1B model's step for so many streams in Q8_0.`,
    ["features", "rows", "µs a row", "µs a batch", "share of the step", "aim", "reached"],
    all.map((l) => [l.features, l.rows, number(l.us_per_row), number(l.us_per_batch),
                    l.share === undefined ? "–" : percent(l.share), "2 %", yes(l.reached)]));
}

/** All that have an aim and miss it, in words. */
function falls(lines) {
  const all = [["decode of ", decodeFigures(lines)], ["prompt, ", prefillFigures(lines)],
               ["streams, ", streamFigures(lines)], ["attention, ", attentionFigures(lines)],
               ["against llama.cpp, ", smallFigures(lines)]]
    .flatMap(([before, figures]) => figures.map((f) => ({...f, label: before + f.label})));
  const short = all.filter((f) => !f.noisy && f.reached === false)
    .map((f) => `- ${f.label}: ${f.share.toFixed(2)} of ${f.aim}`);
  const noisy = all.filter((f) => f.noisy).map((f) => `- ${f.label}: noisy, nothing is claimed`);
  const items = [...short, ...otherFalls(otherFigures(lines)), ...noisy];
  return `### What falls short of its aim\n\n${items.join("\n") || "Nothing."}`;
}

function otherFalls(f) {
  const clients = [...new Set(f.serving.map((l) => l.clients))];
  return [
    ...f.ranks.filter((r) => !r.reached).map((l) =>
      `- ranks against threads: ${l.decode_ratio.toFixed(3)} in decode, ` +
      `${l.prefill_ratio.toFixed(3)} in a prompt, of 1.0`),
    ...f.steps.filter((s) => s.reached === false).map((l) =>
      `- a step of Ember: ${number(l.rest_us)} µs besides arithmetic, of 30`),
    ...clients.map((n) => servingRow(f.serving, n)).flatMap((row) =>
      row.at(-1) === neverBusy ? `- serving, ${row[0]} clients: ${neverBusy}, nothing is claimed`
      : row.at(-1) === "**no**"
        ? `- serving, ${row[0]} clients: ${row[3]} of llama.cpp's throughput; p95 of the first ` +
          `token ${row[5]} ms, between tokens ${row[7]} ms` : []),
    ...f.starts.filter((l) => !l.reached).map((l) =>
      `- start, ${l.which}: ${number(l.seconds)} s of ${l.aim}`),
    ...f.accuracy.filter((l) => l.reached === false).map((l) =>
      `- same top token, ${l.model} in ${l.type}: ${percent(l.top1)} of 99.5 %`),
    ...f.evaluation.filter((l) => l.reached === false).map((l) =>
      `- answers of Ember in ${l.type}: ${(l.lost * 100).toFixed(2)} points lost, of 0.5`),
    ...f.tokenizing.filter((l) => !l.reached).map((l) =>
      `- tokenizing, ${l.name}: ${number(l.slowest.mb_per_second)} MB/s of ${l.slowest.text}, ` +
      "of 20"),
    ...f.sampling.filter((l) => l.reached === false).map((l) =>
      `- sampling, ${l.features}, ${l.rows} rows: ${percent(l.share)} of a step, of 2 %`),
  ];
}

const places = {local: "threads of a process", gloo: "processes, protected links",
                "gloo sealed": "processes, sealed links"};
const sizeOf = (bytes) => bytes < 1024 ? `${bytes} B` : bytes < 1 << 20 ? `${bytes >> 10} KiB`
                          : `${bytes >> 20} MiB`;

function communicators({sums, links}) {
  return section("Between ranks",
    `Adding up floats across ${sums[0]?.ranks} ranks that have a core each and spin, the tree's ` +
    "bits checked first: microseconds (a tenth below, a tenth above). The limit of threads is a " +
    "copy of as many bytes in memory, that of processes both ways of bare sockets, in this run.",
    ["ranks as", "size", "µs", "10 %", "90 %", "GB/s", "limit, µs", "share"],
    sums.map((l) => [places[l.over], sizeOf(l.bytes), number(l.us), number(l.us_p10),
                     number(l.us_p90), l.gb_per_s.toFixed(2),
                     number(l.limit_us), l.of_limit.toFixed(2)])) + "\n\n" +
  section("A decode step by ranks so connected",
    "One stream, microseconds, the logits of all compared first.",
    ["model", "ranks", "as", "µs", "10 %", "90 %", "of two as threads"],
    links.map((l) => [l.model, l.tensor, places[l.over], number(l.us), number(l.us_p10),
                      number(l.us_p90), l.of_threads?.toFixed(2) ?? ""]));
}

/** Everything between the markers. */
export function measuredPart(lines) {
  const f = otherFigures(lines);
  return [context(lines[0]), probes(lines), falls(lines), decode(lines), prefill(lines),
          streams(lines), attention(lines), ...tensor(lines), small(lines), ranks(f),
          communicators(f), steps(f), serving(f), start(f), accuracy(f), tokenizing(f),
          sampling(f)].join("\n\n");
}

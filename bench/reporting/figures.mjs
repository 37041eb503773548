// From measured lines to figures: what was reached, what the limit of that run is, what share.
import {limitsAt, noisyFrom} from "./results.mjs";

export const groups = {
  decode: "one stream", prefill: "prompts", streams: "streams together", attention: "attention",
  tensor: "arithmetics that round, on cores",
  small: "a small model", ranks: "ranks and barriers",
  communicators: "communicators", step: "a step of Ember",
  serving: "serving", start: "start", accuracy: "accuracy", tokenizing: "tokenizing",
  sampling: "sampling",
};
/** Without these no document is written. */
export const needed = ["decode", "prefill", "streams", "attention", "small", "ranks", "step"];

const floats = ["f32", "f16", "bf16"];
const decodeAims = {q8_0: 0.85, bf16: 0.85, q4_0: 0.8, q4_k_m: 0.7};

/** Seconds that products with weights take at least. */
const secondsOfProducts = (line, limits) =>
  line.int8_ops / (limits.int8_gop_per_s.best * 1e9) +
  line.float_ops / (limits.fma_gflop_per_s.best * 1e9);

function figure(values, used) {
  const apart = Math.max(1, ...used.map((limit) => limit.apart));
  const {share, aim} = values;
  return {...values, noisy: apart > noisyFrom, apart,
          reached: aim === undefined || share === undefined ? undefined : share >= aim};
}

const ofGroup = (lines, group, what, who) =>
  lines.filter((l) => l.group === group && l.what === what && (!who || l.who === who));
const samePlace = (a, b, keys) => keys.every((key) => a[key] === b[key]);
const peerOf = (lines, line, keys) =>
  lines.findLast((l) => l.group === line.group && l.what === line.what &&
                 l.who === "llama.cpp" && samePlace(l, line, ["model", "type", ...keys]));

/** Weights' bytes a second over the read bandwidth. */
export function decodeFigures(lines, group = "decode") {
  return ofGroup(lines, group, "decode", "lethe").map((line) => {
    const read = limitsAt(lines, line).read_gb_per_s;
    const limit = read.best * 1e9 / line.weight_bytes;
    const peer = peerOf(lines, line, ["streams"]);
    const judged = lines.find((l) => l.group === group && l.what === "compare" &&
                              samePlace(l, line, ["model", "type"]));
    return figure({label: `${line.model} ${line.type}`, ours: line.tokens_per_second,
                   peer: peer?.tokens_per_second, limit, share: line.tokens_per_second / limit,
                   peerShare: peer && peer.tokens_per_second / limit, aim: decodeAims[line.type],
                   megabytes: line.weight_bytes / 1e6, read: read.best, judged}, [read]);
  });
}

/** Attention at its peak. Over int8 keys it is integers, and values count twice: a weight has two
 *  bytes. */
function secondsOfAttention(line, limits) {
  return line.kv === "int8" ? line.attention_ops * 1.5 / (limits.int8_gop_per_s.best * 1e9)
                            : line.attention_ops / (limits.fma_gflop_per_s.best * 1e9);
}

/** Operations a second over the peak of their kind; beside it with attention's counted, too. */
export function prefillFigures(lines) {
  return ofGroup(lines, "prefill", "prefill", "lethe").map((line) => {
    const limits = limitsAt(lines, line);
    const least = secondsOfProducts(line, limits);
    const peer = peerOf(lines, line, ["tokens"]), float = floats.includes(line.type);
    const over = line.kv ? `, ${line.kv} keys` : "";
    return figure({label: `${line.model} ${line.type}, ${line.tokens}${over}`,
                   ours: line.tokens_per_second, peer: peer?.tokens_per_second,
                   limit: line.tokens / least, share: least / line.seconds,
                   peerShare: peer && peer.tokens_per_second / (line.tokens / least),
                   withAttention: (least + secondsOfAttention(line, limits)) / line.seconds,
                   attentionShare: line.attention_share, aim: float ? 0.6 : 0.5,
                   peak: float ? `FMA ${limits.fma_gflop_per_s.best.toFixed(0)} GFLOP/s`
                               : `int8 ${limits.int8_gop_per_s.best.toFixed(0)} GOP/s`},
                  [float ? limits.fma_gflop_per_s : limits.int8_gop_per_s]);
  });
}

/** The lower of what reading and what products with weights allow. */
export function streamFigures(lines) {
  return ofGroup(lines, "streams", "decode", "lethe").map((line) => {
    const limits = limitsAt(lines, line), read = limits.read_gb_per_s;
    const byReading =
      line.streams / ((line.weight_bytes + line.kv_bytes) / (read.best * 1e9));
    const byProducts = line.streams / secondsOfProducts(line, limits);
    const limit = Math.min(byReading, byProducts);
    const peer = peerOf(lines, line, ["streams"]);
    const peak = limits[line.int8_ops ? "int8_gop_per_s" : "fma_gflop_per_s"];
    return figure({label: `${line.model} ${line.type}, ${line.streams}`, type: line.type,
                   model: line.model, streams: line.streams, context: line.context,
                   ours: line.tokens_per_second, peer: peer?.tokens_per_second,
                   byReading, byProducts, limit, share: line.tokens_per_second / limit,
                   by: byReading < byProducts ? "reading" : "products",
                   aim: line.streams <= 8 ? 0.6 : 0.5},
                  [byReading < byProducts ? read : peak]);
  }).sort((a, b) => (a.type < b.type ? 1 : a.type > b.type ? -1 : a.streams - b.streams));
}

export function attentionFigures(lines) {
  const decode = ofGroup(lines, "attention", "attention_decode").map((line) => {
    const limits = limitsAt(lines, line), read = limits.read_gb_per_s;
    return figure({label: `decode, ${line.context} keys, ${line.kv}`, unit: "GB/s",
                   ours: line.kv_gb_per_second, limit: read.best,
                   share: line.kv_gb_per_second / read.best,
                   ofPeak: line.gflop_per_second / limits.fma_gflop_per_s.best, aim: 0.7}, [read]);
  });
  const prefill = ofGroup(lines, "attention", "attention_prefill").map((line) => {
    const fma = limitsAt(lines, line).fma_gflop_per_s;
    return figure({label: `prompt of ${line.context}, ${line.kv}`, unit: "GFLOP/s",
                   ours: line.gflop_per_second, limit: fma.best,
                   share: line.gflop_per_second / fma.best, aim: 0.4}, [fma]);
  });
  return [...decode, ...prefill];
}

const tensorUnit = {attention_decode: "GB/s", attention_prefill: "GFLOP/s"};
const tensorLabel = (l) => l.what === "attention_decode" ? `attention, ${l.context} keys`
  : l.what === "attention_prefill" ? `attention, prompt of ${l.context}`
  : l.what === "decode" ? `${l.model} ${l.type}, ${l.streams} stream${l.streams > 1 ? "s" : ""}`
  : `${l.model} ${l.type}, prompt of ${l.tokens}`;
const speedOf = (l) => l.what === "attention_decode" ? l.kv_gb_per_second
  : l.what === "attention_prefill" ? l.gflop_per_second : l.tokens_per_second;

/** What arithmetics that round do, beside exact arithmetic in the same unit and llama.cpp. */
export function tensorFigures(lines) {
  const all = lines.filter((l) => l.group === "tensor" && l.arithmetic);
  return all.filter((l) => l.arithmetic !== "exact").map((line) => {
    const same = ["what", "model", "type", "tokens", "streams"];
    if (line.what.startsWith("attention")) same.push("context");
    const exact = all.find((l) => l.arithmetic === "exact" && samePlace(l, line, same));
    const peer = peerOf(lines, line, ["tokens", "streams"]);
    return {arithmetic: line.arithmetic, label: tensorLabel(line),
            unit: tensorUnit[line.what] ?? "tokens/s",
            ours: speedOf(line), exact: exact && speedOf(exact), peer: peer?.tokens_per_second};
  });
}

/** Against the peer of the same turns; medians, since both took several. */
export function smallFigures(lines) {
  const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];
  const ours = ofGroup(lines, "small", "decode", "lethe");
  return [...new Set(ours.map((l) => `${l.model} ${l.type}`))].map((label) => {
    const speeds = (who) => ofGroup(lines, "small", "decode", who)
      .filter((l) => `${l.model} ${l.type}` === label).map((l) => l.tokens_per_second);
    const all = ours.filter((l) => `${l.model} ${l.type}` === label);
    const reads = all.map((l) => limitsAt(lines, l).read_gb_per_s);
    const our = median(speeds("lethe")), peer = median(speeds("llama.cpp"));
    return figure({label, ours: our, peer, share: peer && our / peer, aim: 1.3}, reads);
  });
}

export function otherFigures(lines) {
  const every = (what) => lines.filter((l) => l.what === what);
  return {
    ranks: every("ranks").map((l) => {
      const decode = noSlower(l, "decode"), prefill = noSlower(l, "prefill");
      return {...l, decode, prefill, reached: decode && prefill};
    }),
    barriers: every("barrier"), sums: every("all_reduce"), links: linked(every("decode_step")),
    steps: every("step").map((l) =>
      ({...l, reached: l.streams === 1 ? l.rest_us <= 30 : undefined})),
    serving: every("serving"), starts: startsOf(every("start")),
    accuracy: every("accuracy").map((l) =>
      ({...l, reached: l.type === "q8_0" ? l.top1 >= 0.995 : undefined})),
    evaluation: evaluations(every("evaluation")),
    tokenizing: tokenizers(every("tokenizing")), sampling: samplings(lines),
  };
}

/** Within a hundredth, and within nine tenths of the threads' own turns, nothing is a difference. */
const noSlower = (l, what) => l[`${what}_ratio`] >= 1 ||
  (l[`${what}_ratio`] >= 0.99 && l[`${what}_ms_ranks`] <= l[`${what}_ms_threads_p90`]);

/** Beside the same two ranks as threads of one process. */
const linked = (lines) => lines.map((l) => {
  const threads = lines.find((t) => samePlace(t, {...l, over: "local", tensor: 2},
                                              ["model", "over", "tensor"]));
  return {...l, of_threads: l.tensor === 2 && threads ? l.us / threads.us : undefined};
});

const startsOf = (lines) => lines.map((l) => {
  const aim = l.aim ?? (l.which.startsWith("embedded") ? 1 : 1.5);
  return {...l, aim, reached: l.seconds <= aim};
});

/** Answers of Ember's evaluation; q8_0 may lose half a percentage point to f32. */
function evaluations(lines) {
  const f32 = lines.find((l) => l.type === "f32");
  return lines.map((l) => {
    const lost = f32 && f32.score / f32.of - l.score / l.of;
    return {...l, lost, reached: f32 && l.type === "q8_0" ? lost <= 0.005 : undefined};
  });
}

/** Beside the step that a batch of so many rows comes from, as it was measured. */
const samplings = (lines) => lines.filter((l) => l.what === "sampling").map((l) => {
  const step = ofGroup(lines, "streams", "decode", "lethe")
    .find((s) => s.model === "1b" && s.type === "q8_0" && s.streams === l.rows);
  const share = step && l.us_per_batch * step.tokens_per_second / (step.streams * 1e6);
  return {...l, share, reached: share === undefined ? undefined : share <= 0.02};
});

/** With the most threads: of each tokenizer its speed by kind of text, and the least of them. */
function tokenizers(lines) {
  const threads = Math.max(0, ...lines.map((l) => l.threads));
  const all = lines.filter((l) => l.threads === threads);
  return [...new Set(all.map((l) => l.tokenizer))].map((name) => {
    const own = all.filter((l) => l.tokenizer === name);
    const slowest = own.reduce((a, b) => (a.mb_per_second <= b.mb_per_second ? a : b));
    return {name, threads, slowest, reached: slowest.mb_per_second >= 20,
            speeds: Object.fromEntries(own.map((l) => [l.text, l.mb_per_second]))};
  });
}

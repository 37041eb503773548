// A results file: a line of JSON for what was measured, in the order in which it was, between
// probes of the machine. The first line says where and when.

/** What a line must have, by its "what"; others are kept and not looked at. */
const fields = {
  context: {cpu: "string", cores: "number", threads: "number", date: "string", commit: "string",
            changed: "boolean", kernel: "string", load: "number", quick: "boolean",
            peer: "string"},
  probe: {read_gb_per_s: "number", fma_gflop_per_s: "number", int8_gop_per_s: "number"},
  again: {apart: "number"},
  decode: {who: "string", model: "string", type: "string", streams: "number",
           tokens_per_second: "number"},
  prefill: {who: "string", model: "string", type: "string", tokens: "number",
            tokens_per_second: "number"},
  compare: {model: "string", type: "string", agree: "number", of: "number", worst_gap: "number"},
  attention_decode: {kv: "string", context: "number", kv_gb_per_second: "number",
                     gflop_per_second: "number"},
  attention_prefill: {kv: "string", context: "number", gflop_per_second: "number"},
  ranks: {decode_ms_ranks: "number", decode_ms_threads: "number", decode_ms_threads_p90: "number",
          prefill_ms_ranks: "number", prefill_ms_threads: "number",
          prefill_ms_threads_p90: "number", decode_ratio: "number", prefill_ratio: "number"},
  barrier: {threads: "number", ns: "number", ns_p10: "number", ns_p90: "number"},
  all_reduce: {over: "string", ranks: "number", bytes: "number", us: "number", us_p10: "number",
               us_p90: "number", gb_per_s: "number", limit_us: "number", of_limit: "number"},
  decode_step: {model: "string", over: "string", tensor: "number", us: "number", us_p10: "number",
                us_p90: "number"},
  step: {streams: "number", step_us: "number", arithmetic_us: "number", rest_us: "number",
         rest_us_p90: "number"},
  serving: {who: "string", clients: "number", tokens_per_second: "number or null",
            ttft_p50_ms: "number", ttft_p95_ms: "number", gap_p50_ms: "number",
            gap_p95_ms: "number"},  // null: never were all clients busy
  start: {which: "string", seconds: "number"},
  accuracy: {model: "string", type: "string", kl: "number", top1: "number", positions: "number"},
  evaluation: {type: "string", score: "number", of: "number"},
  tokenizing: {tokenizer: "string", text: "string", threads: "number", mb_per_second: "number"},
  sampling: {features: "string", rows: "number", threads: "number",
             us_per_row: "number", us_per_batch: "number"},
};
/** And what limits are computed from, which only our own lines say. */
const work = {
  decode: {weight_bytes: "number", kv_bytes: "number", int8_ops: "number", float_ops: "number"},
  prefill: {seconds: "number", int8_ops: "number", float_ops: "number", attention_ops: "number",
            attention_share: "number"},
};

function checkFields(line, wanted, fail) {
  for (const [name, kind] of Object.entries(wanted)) {
    const value = line[name];
    if (value === null && kind === "number or null") continue;
    const [type] = kind.split(" ");
    if (typeof value !== type || (type === "number" && !Number.isFinite(value)))
      fail(`"${line.what}" has no ${kind} "${name}"`);
  }
}

function checkLine(line, fail) {
  if (line === null || typeof line !== "object" || typeof line.what !== "string")
    fail('is no object with a "what"');
  checkFields(line, fields[line.what] ?? {}, fail);
  if (line.who === "lethe") checkFields(line, work[line.what] ?? {}, fail);
  if (!["context", "probe"].includes(line.what) && typeof line.group !== "string")
    fail(`"${line.what}" has no string "group"`);
}

/** The lines of a results file; throws an Error that names file and line. */
export function readResults(text, name) {
  const lines = [];
  text.split("\n").forEach((row, i) => {
    if (row.trim() === "") return;
    const fail = (why) => { throw new Error(`${name}:${i + 1}: ${why}`); };
    let line;
    try {
      line = JSON.parse(row);
    } catch {
      fail(`is no line of JSON: ${row.slice(0, 60)}`);
    }
    checkLine(line, fail);
    const measured = Object.entries(line).filter(([, value]) => value !== null);
    lines.push({...Object.fromEntries(measured), at_line: i + 1});
  });
  if (lines[0]?.what !== "context")
    throw new Error(`${name}:1: the first line must say where and when ("what": "context")`);
  return lines;
}

/** A limit that moved further than this between two probes carries no claim. */
export const noisyFrom = 1.5;

const limitNames = ["read_gb_per_s", "fma_gflop_per_s", "int8_gop_per_s"];

/** The better of the probes right before and right after a line, and how far they are apart. */
export function limitsAt(lines, line, name = "results") {
  const at = lines.indexOf(line);
  const before = lines.slice(0, at).findLast(({what}) => what === "probe");
  const after = lines.slice(at + 1).find(({what}) => what === "probe");
  if (!before || !after)
    throw new Error(`${name}:${line.at_line}: no probe ${before ? "after" : "before"} this line`);
  return Object.fromEntries(limitNames.map((limit) => {
    const [low, high] = [before[limit], after[limit]].sort((a, b) => a - b);
    return [limit, {best: high, apart: high / low}];
  }));
}

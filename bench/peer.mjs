// Measures llama.cpp (through node-llama-cpp) on one GGUF file; a JSON line for each number.
import {mkdtempSync, rmSync} from "node:fs";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {parseArgs} from "node:util";

const help = `usage: node bench/peer.mjs MODEL.gguf [OPTIONS]
  --streams N,N,..  decode that many at once
  --context N       tokens of prompt that each stream begins with (16)
  --tokens N        timed for each stream and number of streams (32)
  --prompt N,N,..   compute prompts of this many tokens
  --threads N       (2)`;
const {values: options, positionals} = parseArgs({allowPositionals: true, options: {
  streams: {type: "string"}, context: {type: "string", default: "16"},
  tokens: {type: "string", default: "32"}, prompt: {type: "string"},
  threads: {type: "string", default: "2"}, help: {type: "boolean"}}});
if (options.help || positionals.length !== 1 || !(options.streams || options.prompt)) {
  console.error(help);
  process.exit(options.help ? 0 : 2);
}
const list = (text) => (text ?? "").split(",").filter(Boolean).map(Number);
const levels = list(options.streams).sort((a, b) => b - a), prompts = list(options.prompt);
const [contextTokens, tokens, threads] =
  [options.context, options.tokens, options.threads].map(Number);

const {getLlama, LlamaLogLevel} = await import("node-llama-cpp");
const llama = await getLlama({gpu: false, build: "never", skipDownload: true, maxThreads: threads,
                              logLevel: LlamaLogLevel.error});
const model = await llama.loadModel({modelPath: positionals[0], gpuLayers: 0, useMmap: true});
const longest = Math.max(contextTokens + (tokens + 4) * levels.length, ...prompts) + 16;
const streams = levels[0] ?? 1;
const context = await model.createContext({contextSize: longest, sequences: streams, threads,
                                           batchSize: Math.max(512, streams),
                                           flashAttention: true});
// The same ids for everyone who measures: a fixed walk through the vocabulary.
const vocabulary = model.fileInfo.metadata.tokenizer.ggml.tokens.length;
const range = Math.min(30000, vocabulary - 100);
const promptOf = (stream, count) =>
  Array.from({length: count}, (_, i) => 100 + ((i * 7919 + stream * 104729) % range));
const say = (line) => console.log(JSON.stringify({who: "llama.cpp", ...line}));

/// All streams get stream 0's context: its keys and values are copied, not computed again.
async function begin(sequences) {
  const prompt = promptOf(0, contextTokens), last = prompt.pop();
  await sequences[0].evaluateWithoutGeneratingNewTokens(prompt);
  if (sequences.length > 1) {
    const folder = mkdtempSync(join(tmpdir(), "lethe-peer-")), file = join(folder, "state");
    await sequences[0].saveStateToFile(file);
    for (const s of sequences.slice(1)) await s.loadStateFromFile(file, {acceptRisk: true});
    rmSync(folder, {recursive: true});
  }
  return sequences.map((s) => ({ids: [], next: s.evaluate([last], {temperature: 0})}));
}

/// The next ids of a stream, and when each of them came.
async function take(stream, count) {
  const times = [];
  while (times.length < count) {
    const {value} = await stream.next.next();
    times.push(performance.now());
    stream.ids.push(value);
  }
  return times;
}

async function decode(sequences) {
  const running = await begin(sequences);
  for (const [l, level] of levels.entries()) {
    for (const s of running.splice(level)) await s.next.return();
    const before = running[0].ids.length;
    const times = await Promise.all(running.map((s) => take(s, tokens + 1)));
    // Between the last one's first token and the first one's last, all streams make tokens.
    const from = Math.max(...times.map((t) => t[0]));
    const to = Math.min(...times.map((t) => t.at(-1)));
    const done = times.flat().filter((t) => from < t && t <= to).length;
    say({what: "decode", streams: level, context: contextTokens + before + tokens / 2,
         tokens_per_second: done / ((to - from) / 1000), ids: running[0].ids.slice(0, 16)});
  }
  for (const s of running) await s.next.return();
}

async function prefill(sequence, count) {
  await sequence.clearHistory();
  await sequence.evaluateWithoutGeneratingNewTokens(promptOf(1, Math.min(count, 64)));
  await sequence.clearHistory();
  const begun = performance.now();
  await sequence.evaluateWithoutGeneratingNewTokens(promptOf(0, count));
  const seconds = (performance.now() - begun) / 1000;
  say({what: "prefill", tokens: count, seconds, tokens_per_second: count / seconds});
}

const sequences = Array.from({length: streams}, () => context.getSequence());
if (levels.length) await decode(sequences);
for (const count of prompts) await prefill(sequences[0], count);
await llama.dispose();
process.exit(0);

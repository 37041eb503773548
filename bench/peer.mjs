// Measures llama.cpp (through node-llama-cpp) on one GGUF file and prints one JSON line:
//   node peer.mjs MODEL.gguf decode|prefill|batch|greedy [tokens] [streams] [threads] [prompt]
import {getLlama, LlamaLogLevel} from "node-llama-cpp";

const [path, what, tokensText = "64", streamsText = "1", threadsText = "2", promptText = "16"] =
  process.argv.slice(2);
const tokens = Number(tokensText), streams = Number(streamsText), threads = Number(threadsText);
const promptTokens = Number(promptText);

const llama = await getLlama({gpu: false, build: "never", skipDownload: true, maxThreads: threads,
                              logLevel: LlamaLogLevel.error});
const model = await llama.loadModel({modelPath: path, gpuLayers: 0, useMmap: true});
const contextSize = promptTokens + tokens + 16;
const context = await model.createContext({contextSize, sequences: streams, threads,
                                           batchSize: Math.max(512, streams),
                                           flashAttention: true});
// The same ids for everyone who measures: a fixed walk through the vocabulary.
const vocabulary = model.fileInfo.metadata.tokenizer.ggml.tokens.length;
const range = Math.min(30000, vocabulary - 100);
const promptOf = (stream, count) =>
  Array.from({length: count}, (_, i) => 100 + ((i * 7919 + stream * 104729) % range));
const greedy = {temperature: 0};

async function decodeOne(sequence, stream, count) {
  const ids = [], times = [];
  for await (const id of sequence.evaluate(promptOf(stream, promptTokens), greedy)) {
    times.push(performance.now());
    ids.push(id);
    if (ids.length > count) break;
  }
  return {times, ids};
}

const sequences = Array.from({length: streams}, () => context.getSequence());
let seconds = 0, done = 0, ids;
if (what === "prefill") {
  // Warm, then timed on a fresh sequence.
  await sequences[0].evaluateWithoutGeneratingNewTokens(promptOf(1, Math.min(tokens, 64)));
  await sequences[0].clearHistory();
  const begin = performance.now();
  await sequences[0].evaluateWithoutGeneratingNewTokens(promptOf(0, tokens));
  seconds = (performance.now() - begin) / 1000;
  done = tokens;
} else {
  const runs = await Promise.all(sequences.map((s, i) => decodeOne(s, i, tokens)));
  // Between the last one's first token and the first one's last, all streams make tokens.
  const begin = Math.max(...runs.map((r) => r.times[0]));
  const end = Math.min(...runs.map((r) => r.times.at(-1)));
  seconds = (end - begin) / 1000;
  done = runs.flatMap((r) => r.times).filter((t) => begin < t && t <= end).length;
  ids = runs[0].ids;
}
console.log(JSON.stringify({peer: "llama.cpp", what, tokens: done, seconds,
                            tokens_per_second: done / seconds, ids: ids?.slice(0, 16)}));
await llama.dispose();
process.exit(0);

// llama.cpp behind the same interface: streamed chat completions over node-llama-cpp's parallel
// sequences, whose own batching puts the tokens of all of them into one step.
//   node peer_server.mjs MODEL.gguf [--sequences N] [--context TOKENS] [--threads N]
// Prints `listening api URL` once it can answer; SIGTERM ends it.
import {createServer} from "node:http";
import {parseArgs} from "node:util";

const help = `usage: node peer_server.mjs MODEL.gguf [OPTIONS]
Serves POST /v1/chat/completions (streamed, greedy, of fixed length) by llama.cpp.
  --sequences N     answers at once (default 1)
  --context TOKENS  prompt and answer of one of them, at most (default 2048)
  --threads N       (default 2)`;
const {values: flags, positionals} = parseArgs({
  allowPositionals: true,
  options: {sequences: {type: "string", default: "1"}, context: {type: "string", default: "2048"},
            threads: {type: "string", default: "2"}, help: {type: "boolean", default: false}},
});
if (flags.help || positionals.length !== 1) {
  console.log(help);
  process.exit(flags.help ? 0 : 2);
}
const threads = Number(flags.threads), sequences = Number(flags.sequences);

const {getLlama, LlamaLogLevel} = await import("node-llama-cpp");
const llama = await getLlama({gpu: false, build: "never", skipDownload: true, maxThreads: threads,
                              logLevel: LlamaLogLevel.error});
const model = await llama.loadModel({modelPath: positionals[0], gpuLayers: 0, useMmap: true});
const context = await model.createContext({contextSize: Number(flags.context), sequences, threads,
                                           batchSize: 512, flashAttention: true});
const free = Array.from({length: sequences}, () => context.getSequence());
const waiting = [];

async function takeSequence() {
  if (free.length > 0) return free.pop();
  return new Promise((resolve) => waiting.push(resolve));
}

function giveBack(sequence) {
  const next = waiting.shift();
  if (next) next(sequence);
  else free.push(sequence);
}

async function bodyOf(request) {
  const parts = [];
  for await (const part of request) parts.push(part);
  return JSON.parse(Buffer.concat(parts).toString());
}

// What the model's own template makes of it: the contents, one after the other.
const promptOf = (ask) => ask.messages.map((m) => m.content).join("");

async function answer(ask, response) {
  const prompt = model.tokenize(promptOf(ask), true);
  const sequence = await takeSequence();
  let made = 0;
  try {
    await sequence.clearHistory();
    response.writeHead(200, {"Content-Type": "text/event-stream"});
    const say = (object) => response.write(`data: ${JSON.stringify(object)}\n\n`);
    for await (const id of sequence.evaluate(prompt, {temperature: 0, yieldEogToken: true})) {
      ++made;
      const last = made === ask.max_tokens;
      // An end that the model chose is no end here, but its word would be: it goes on from it.
      say({object: "chat.completion.chunk", model: ask.model,
           choices: [{index: 0, delta: {content: model.detokenize([id]) || "?"},
                      finish_reason: last ? "length" : null}]});
      if (last || response.destroyed) break;
    }
    say({choices: [], usage: {prompt_tokens: prompt.length, completion_tokens: made}});
    response.end("data: [DONE]\n\n");
  } finally {
    giveBack(sequence);
  }
}

const server = createServer(async (request, response) => {
  try {
    if (request.method !== "POST" || request.url !== "/v1/chat/completions") {
      response.writeHead(404).end();
      return;
    }
    await answer(await bodyOf(request), response);
  } catch (error) {
    console.error(`peer_server: ${error.message}`);
    if (!response.headersSent) response.writeHead(500);
    response.end();
  }
});
server.listen(0, "127.0.0.1", () =>
  console.log(`listening api http://127.0.0.1:${server.address().port}`));
process.on("SIGTERM", () => process.exit(0));

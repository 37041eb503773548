// Asks llama.cpp and `lethe generate` the same chats, greedily, and compares the answers:
//   node same_answers.mjs FOLDER [EVAL-FOLDER] [CHATS OF EACH KIND]
// The model goes through `lethe model convert` as f32; prompts' ids are compared as well.
import {spawnSync} from "node:child_process";
import {mkdtempSync, readFileSync, readdirSync, rmSync} from "node:fs";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {getLlama, LlamaLogLevel} from "node-llama-cpp";

const [folder, data = join(folder, "eval"), countText = "10"] = process.argv.slice(2);
const program = new URL("../build/release/actors/lethe", import.meta.url).pathname;
const most = 200;

function lethe(args, input) {
  const run = spawnSync(program, args, {input, encoding: "utf8"});
  if (run.status !== 0) throw new Error(`lethe ${args[0]}: ${run.stderr}`);
  return run.stdout;
}

const work = mkdtempSync(join(tmpdir(), "lethe-same-"));
const file = join(work, "model.gguf");
lethe(["model", "convert", folder, file, "--type", "f32"]);
const llama = await getLlama({gpu: false, build: "never", skipDownload: true,
                              maxThreads: 1, logLevel: LlamaLogLevel.error});
const model = await llama.loadModel({modelPath: file, gpuLayers: 0});
const context = await model.createContext({contextSize: 1024, threads: 1});
const sequence = context.getSequence();

async function peerAnswer(prompt) {
  await sequence.clearHistory();
  const ids = [];
  for await (const id of sequence.evaluate(prompt, {temperature: 0})) {
    if (model.isEogToken(id) || ids.length === most) break;
    ids.push(id);
  }
  return model.detokenize(ids);
}

const chats = readdirSync(data).filter((name) => name.endsWith(".jsonl")).sort().flatMap((name) =>
  readFileSync(join(data, name), "utf8").trim().split("\n").slice(0, Number(countText))
    .map((line) => JSON.parse(line).messages));
let same = 0, tokenized = 0;
for (const messages of chats) {
  if (messages.at(-1).role === "assistant") messages.pop();
  const chat = JSON.stringify(messages);
  const text = lethe(["template", "--model", folder], chat);
  const ids = JSON.parse(lethe(["tokenize", "--model", folder, "--json"], JSON.stringify(text)));
  const theirs = model.tokenize(text, true);
  const prompt = ids.flat();
  if (JSON.stringify(prompt) === JSON.stringify([...theirs])) ++tokenized;
  const ours = lethe(["generate", "--model", folder, "--temperature", "0", "--max-tokens", `${most}`,
                      "--chat", chat]).replace(/\n$/, "");
  const other = await peerAnswer(theirs);
  if (ours === other) ++same;
  else console.log(JSON.stringify({asked: messages.at(-1).content, lethe: ours, "llama.cpp": other}));
}
console.log(JSON.stringify({chats: chats.length, same_ids: tokenized, same_answers: same}));
await llama.dispose();
rmSync(work, {recursive: true});
process.exit(same === chats.length && tokenized === chats.length ? 0 : 1);

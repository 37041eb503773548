// From a process's start to its first token. See --help.
import {spawnSync} from "node:child_process";
import {createReadStream, rmSync, writeFileSync} from "node:fs";
import {join} from "node:path";
import {parseArgs} from "node:util";
import {benchOf, program, root} from "./processes.mjs";
import {Client} from "./serving_load.mjs";

const help = `usage: bench/start [OPTIONS]
Measures the time from a process's start to the first byte of its first token: lethe generate with a
file in the page cache, a cluster of it and one of the embedded model through their APIs. Beside it
what a copy of the file into new memory takes (cp to /dev/shm, one thread).
  --model FILE  GGUF (default: 1b, Q8_0, of random weights, made when first asked for)
  --runs N      of each (default 7)
  --only WHICH  file or cluster`;
const {values: flags} = parseArgs({
  options: {model: {type: "string", default: ""}, runs: {type: "string", default: "7"},
            only: {type: "string", default: ""}, help: {type: "boolean", default: false}},
});
if (flags.help) {
  console.log(help);
  process.exit(0);
}

const {work, giveUp, modelFile, run, serve} = benchOf("start");

/** Into the page cache, from which the kernel may have dropped it since. */
async function readWhole(file) {
  for await (const part of createReadStream(file, {highWaterMark: 1 << 20})) void part;
}

const seconds = (begin) => (performance.now() - begin) / 1000;

async function generateOnce(file) {
  await readWhole(file);
  const begin = performance.now();
  const {child, ended, why} = run(program, ["generate", "--model", file, "--prompt",
                                            "a river", "--max-tokens", "4", "--temperature", "0",
                                            "--ignore-eos", "-q"]);
  let took = 0, text = "";
  child.stdout.on("data", (piece) => {
    took ||= seconds(begin);
    text += piece;
  });
  if (await ended !== 0) giveUp(`generate failed: ${why()}`);
  return {took, text};
}

async function clusterOnce(model) {
  if (model.endsWith(".gguf")) await readWhole(model);
  const file = join(work, "cluster.toml");
  writeFileSync(file, `name = "start-${process.pid}"
profile = "lab"
[model]
path = "${model}"
name = "bench"
[listen]
api = "127.0.0.1:0"
[trace]
mode = "all"
`);
  const begin = performance.now();
  const server = await serve(program, ["up", file]);
  const client = new Client(server.url);
  let answer = null, asked = 0;
  while (!answer) {
    try {
      asked = seconds(begin);
      answer = await client.ask({prompt: "What is a river?", tokens: 16});
    } catch (error) {
      // Until its engine is ready it turns requests away.
      if (!error.message.startsWith("503") || seconds(begin) > 60) giveUp(error.message);
      // Seldom enough to leave the cores to it.
      await new Promise((done) => setTimeout(done, 10));
    }
  }
  client.close();
  await server.end();
  return {took: asked + (answer.times[0] - answer.asked) / 1000, text: answer.text};
}

function copySeconds(file) {
  const to = `/dev/shm/lethe-start-${process.pid}`;
  const begin = performance.now();
  const copied = spawnSync("cp", [file, to]);
  const took = seconds(begin);
  rmSync(to, {force: true});
  return copied.status === 0 ? Number(took.toFixed(3)) : null;
}

async function measure(which, aim, once, more = {}) {
  const took = [];
  let text = null;
  // One before, whose answer the others must repeat.
  for (let i = 0; i <= Number(flags.runs); ++i) {
    console.error(`start: ${which}, ${i} of ${flags.runs}`);
    const one = await once();
    if (one.text === "" || (text !== null && one.text !== text))
      giveUp(`${which}: said ${JSON.stringify(one.text)}, before ${JSON.stringify(text)}`);
    text = one.text;
    if (i > 0) took.push(one.took);
  }
  took.sort((a, b) => a - b);
  const round = (x) => Number(x.toFixed(3));
  console.log(JSON.stringify({what: "start", which, seconds: round(took[took.length >> 1]),
                              best: round(took[0]), aim, runs: took.length, ...more}));
}

if (!(Number(flags.runs) >= 1)) giveUp(`--runs ${flags.runs}: a number from 1 on`);
if (!["", "file", "cluster"].includes(flags.only)) giveUp(`--only ${flags.only}: file or cluster`);
if (flags.only !== "cluster") {
  const file = modelFile(flags.model);
  await readWhole(file);
  await measure(flags.model ? "file" : "1b q8_0", 1.5, () => generateOnce(file),
                {copy_s: copySeconds(file)});
  await measure(flags.model ? "cluster" : "1b q8_0 cluster", 1.5, () => clusterOnce(file));
}
if (flags.only !== "file")
  await measure("embedded cluster", 1.0, () => clusterOnce(join(root, "models/ember")));
process.exit(0);

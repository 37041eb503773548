// Serving through the API: a cluster of ours and llama.cpp, by turns, the same requests by the
// same clients, each from a fresh server that has answered once. See --help.
import {writeFileSync} from "node:fs";
import {join} from "node:path";
import {parseArgs} from "node:util";
import {benchOf, program, root} from "./processes.mjs";
import {Client, measure, quantile, requestsFrom, runClients} from "./serving_load.mjs";

const help = `usage: bench/serving [OPTIONS]
Measures tokens a second, time to the first token and gaps between tokens, by streamed chats.
  --model FILE     GGUF (default: 1b, Q8_0, of random weights, made when first asked for)
  --clients LIST   at once (default 1,8,16)
  --seconds S      in which new requests are asked once all clients have begun to hear an answer,
                   for each turn of each side (default 60); one client alone asks all of the
                   requests, since what a second holds depends on which they are
  --requests N     of a turn at most (default: six for each client)
  --turns N        of each side (default 2)
  --only WHO       lethe or peer
  --threads N      of llama.cpp (default 2); ours takes what it takes by default
  --seed N         draws lengths and texts (default 8)
  --config TEXT    more lines for our cluster file`;
const {values: flags} = parseArgs({
  options: {model: {type: "string", default: ""}, clients: {type: "string", default: "1,8,16"},
            seconds: {type: "string", default: "60"}, requests: {type: "string", default: "0"},
            turns: {type: "string", default: "2"}, only: {type: "string", default: ""},
            threads: {type: "string", default: "2"}, seed: {type: "string", default: "8"},
            config: {type: "string", default: ""}, help: {type: "boolean", default: false}},
});
if (flags.help) {
  console.log(help);
  process.exit(0);
}

const context = 2048;
const {work, giveUp, modelFile, serve} = benchOf("serving");

/** How many, from a flag's text. */
function counted(name, text, least) {
  const n = Number(text);
  if (!Number.isInteger(n) || n < least)
    giveUp(`--${name} ${text}: a whole number from ${least} on`);
  return n;
}

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

async function startLethe(model, clients) {
  // Room for every client's longest request, as the peer has it: 64 KiB a token in this shape.
  const file = join(work, `cluster-${clients}.toml`);
  writeFileSync(file, `name = "serving-${process.pid}"
profile = "lab"
[model]
path = "${model}"
name = "bench"
context = ${context}
[batching]
kv_memory = "${Math.max(256, clients * 1280 * 64 / 1024)} MiB"
[listen]
api = "127.0.0.1:0"
${flags.config.replaceAll("\\n", "\n")}
`);
  const server = await serve(program, ["up", file]);
  while (!server.why().includes("ready:")) {
    if (server.child.exitCode !== null) giveUp("the cluster did not come up");
    await pause(20);
  }
  return server;
}

const startPeer = (model, clients) =>
  serve(process.execPath, [join(root, "bench/peer_server.mjs"), model, "--sequences", `${clients}`,
                           "--context", `${context}`, "--threads", flags.threads]);

const sides = {lethe: {name: "lethe", start: startLethe},
               peer: {name: "llama.cpp", start: startPeer}};
const chosen = flags.only ? [flags.only] : ["lethe", "peer"];
if (!chosen.every((who) => sides[who])) giveUp(`--only ${flags.only}: lethe or peer`);

/** One fixed request alone, then among others: how many of its pieces are the same, of how many. */
async function sameInCompany(url, clients, seed) {
  const [fixed, ...others] = requestsFrom(seed + 1, clients);
  fixed.tokens = 32;
  const client = new Client(url);
  const alone = await client.ask(fixed);
  const rest = runClients(url, clients - 1, others.map((o) => ({...o, tokens: 48})), 600);
  const among = clients > 1 ? await client.ask(fixed) : alone;
  client.close();
  if ((await rest).failed > 0) giveUp("a request of the check failed");
  let same = 0;
  while (same < alone.text.length && alone.text[same] === among.text[same]) ++same;
  return {same, of: alone.text.length, prompt: alone.usage.prompt_tokens};
}

const round = (x, digits = 1) => Number(x.toFixed(digits));

async function turn(who, model, clients, requests, check) {
  console.error(`serving: ${sides[who].name}, ${clients} clients`);
  const server = await sides[who].start(model, clients);
  const warm = new Client(server.url);
  await warm.ask({prompt: "warm", tokens: 2});
  warm.close();
  if (check) {
    const {same, of, prompt} = await sameInCompany(server.url, clients, Number(flags.seed));
    console.log(JSON.stringify({what: "answer in company", who: sides[who].name, clients,
                                same_letters: same, of, prompt_tokens: prompt}));
    if (who === "lethe" && same !== of) giveUp("our answer depends on company: that is a defect");
  }
  const cpu = process.cpuUsage(), begin = performance.now();
  const run = await runClients(server.url, clients, requests, clients === 1 ? Infinity : seconds);
  const used = process.cpuUsage(cpu);
  run.client_share = (used.user + used.system) / 1000 / (performance.now() - begin);
  await server.end();
  return run;
}

function report(who, clients, runs) {
  const m = measure(runs, clients);
  if (Number.isNaN(m.tokens_per_second))
    console.error(`serving: ${sides[who].name}: never were all clients busy; raise --requests`);
  const line = {what: "serving", who: sides[who].name, clients,
                tokens_per_second: round(m.tokens_per_second, 2),
                ttft_p50_ms: round(quantile(m.first, 0.5)),
                ttft_p95_ms: round(quantile(m.first, 0.95)),
                gap_p50_ms: round(quantile(m.gaps, 0.5)), gap_p95_ms: round(quantile(m.gaps, 0.95)),
                gap_max_ms: round(quantile(m.gaps, 1)),
                requests: runs.reduce((n, r) => n + r.answers.length, 0),
                failed: runs.reduce((n, r) => n + r.failed, 0), window_s: round(m.window_s),
                client_cpu: round(Math.max(...runs.map((r) => r.client_share)), 4)};
  console.log(JSON.stringify(line));
  return line;
}

const seconds = counted("seconds", flags.seconds, 1);
const model = modelFile(flags.model);
for (const text of flags.clients.split(",")) {
  const clients = counted("clients", text, 1);
  const count = counted("requests", flags.requests, 0) || 6 * clients;
  const requests = requestsFrom(counted("seed", flags.seed, 0), count);
  const runs = {lethe: [], peer: []};
  for (let i = 0; i < counted("turns", flags.turns, 1); ++i)
    for (const who of chosen) runs[who].push(await turn(who, model, clients, requests, i === 0));
  const [ours, theirs] = chosen.map((who) => report(who, clients, runs[who]));
  if (!theirs) continue;
  const ratio = (of) => round(ours[of] / theirs[of], 3);
  console.log(JSON.stringify({what: "serving ratio", clients,
                              throughput: ratio("tokens_per_second"), aim: 2,
                              ttft_p95: ratio("ttft_p95_ms"), gap_p95: ratio("gap_p95_ms")}));
}
process.exit(0);

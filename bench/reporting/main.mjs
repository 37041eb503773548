// bench/report: measures, or takes what was measured, and writes tables and plots.
import {existsSync, readFileSync} from "node:fs";
import {availableParallelism} from "node:os";
import {join, relative, resolve} from "node:path";
import {parseArgs} from "node:util";
import {checkWhole, write} from "./document.mjs";
import {groups} from "./figures.mjs";
import {Measuring} from "./measure.mjs";
import {plan} from "./plan.mjs";
import {readResults} from "./results.mjs";

const root = resolve(import.meta.dirname, "../..");
const help = `usage: bench/report [OPTIONS]
Measures Lethe, llama.cpp and the machine's limits on the same model files, and writes the tables of
docs/performance.md and the plots in docs/performance. Lines go to build/report/results.jsonl.
  --only GROUP    one of: ${Object.keys(groups).join(", ")}
  --quick         few tokens, for trying
  --threads N     of engine, peer and probe (default: all cores)
  --render FILE   measure nothing: write tables and plots of these results
  --to FOLDER     write performance.md and performance/*.svg there; with --only and --quick that is
                  build/report unless said, else docs
  --help          this text`;

function options() {
  const {values} = parseArgs({options: {
    only: {type: "string"}, quick: {type: "boolean", default: false}, threads: {type: "string"},
    render: {type: "string"}, to: {type: "string"}, help: {type: "boolean"}}});
  if (values.only !== undefined && !(values.only in groups))
    throw new Error(`--only ${values.only}: is no group; one of ${Object.keys(groups).join(", ")}`);
  const threads = Number(values.threads ?? availableParallelism());
  if (!Number.isInteger(threads) || threads < 1 || threads > 256)
    throw new Error(`--threads ${values.threads}: a whole number from 1 to 256`);
  return {...values, threads};
}

async function measured({only, quick, threads}) {
  const units = plan({root, threads, quick}).filter((u) => !only || u.group === only);
  if (units.length === 0) throw new Error(`--only ${only}: there is no program for it here`);
  if (!existsSync(join(root, "build/release/bench/probe")))
    throw new Error("build/release/bench has no programs; ./lethe report builds them first");
  if (!existsSync(join(root, "bench/node_modules/node-llama-cpp")))
    throw new Error("bench/node_modules has no node-llama-cpp; ./lethe report fetches it first");
  const results = join(root, "build/report/results.jsonl");
  await new Measuring({root, results, threads, quick}).run(units);
  return results;
}

async function main() {
  const asked = options();
  if (asked.help) return console.log(help);
  const results = asked.render ?? await measured(asked);
  const lines = readResults(readFileSync(results, "utf8"), results);
  const partial = asked.only || asked.quick;
  const folder = asked.to ?? join(root, partial ? "build/report" : "docs");
  if (folder === join(root, "docs")) checkWhole(lines, results);
  for (const file of write(lines, folder)) console.log(relative(process.cwd(), file));
}

main().catch((e) => {
  console.error(`report: ${e.message}`);
  process.exitCode = 1;
});

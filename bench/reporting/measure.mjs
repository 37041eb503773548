// Runs a plan: programs print lines of JSON, which get their context and go to the results file.
import {spawn, spawnSync} from "node:child_process";
import {appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync} from "node:fs";
import {availableParallelism, cpus, loadavg, release} from "node:os";
import {dirname, join} from "node:path";
import {createInterface} from "node:readline";
import {noisyFrom} from "./results.mjs";

/** Of greedy tokens; random weights make near ties, but no rounding is that coarse. */
const gapMost = 0.2;

/** How often what reading limits is measured, until it reads the same before and behind. */
const turnsMost = 4;

const git = (root, ...args) => spawnSync("git", ["-C", root, ...args], {encoding: "utf8"}).stdout;

/** Cores in use between two readings of cpus(), `ms` apart. */
export function coresBetween(before, after, ms) {
  const used = (cores) =>
    cores.reduce((sum, {times}) => sum + times.user + times.nice + times.sys, 0);
  return (used(after) - used(before)) / ms;
}

/** Over the next second. A load average would count the build that ended before. */
export function coresInUse() {
  const before = cpus(), begin = performance.now();
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000);
  return coresBetween(before, cpus(), performance.now() - begin);
}

export function contextLine(root, threads, quick) {
  const version = (name) => {
    const file = join(root, "bench/node_modules", name, "package.json");
    return existsSync(file) ? `${name} ${JSON.parse(readFileSync(file, "utf8")).version}` : "";
  };
  return {what: "context", cpu: cpus()[0]?.model.trim() || "unknown", cores: availableParallelism(),
          threads, date: new Date().toISOString().slice(0, 16).replace("T", " ") + " UTC",
          commit: git(root, "rev-parse", "--short", "HEAD").trim() || "unknown",
          changed: git(root, "status", "--porcelain", "--untracked-files=no").trim() !== "",
          kernel: release(), load: coresInUse(), quick, peer: version("node-llama-cpp")};
}

/** Runs one program to its end; its lines, parsed. Throws what is to be said if it fails. */
async function run(argv, root) {
  const child = spawn(argv[0], argv.slice(1), {cwd: root, stdio: ["ignore", "pipe", "pipe"]});
  let said = "";
  child.stderr.on("data", (text) => { said = (said + text).slice(-4000); });
  const ended = new Promise((done, failed) => {
    child.on("error", (e) => failed(new Error(`${argv[0]}: cannot be run: ${e.message}`)));
    child.on("close", (status, signal) => done(signal ?? status));
  });
  ended.catch(() => {});  // it is awaited below, behind the lines
  const lines = [];
  for await (const row of createInterface({input: child.stdout}))
    if (row.trim() !== "") lines.push(row);
  const status = await ended;
  if (status !== 0) throw new Error(`${argv.join(" ")}\nended with ${status}: ${said.trim()}`);
  return lines.map((row) => {
    try {
      return JSON.parse(row);
    } catch {
      throw new Error(`${argv[0]} printed what is no JSON: ${row.slice(0, 80)}`);
    }
  });
}

export class Measuring {
  #begun = Date.now();
  #reading;  // as the last probe had it

  constructor({root, results, threads, quick}) {
    Object.assign(this, {root, results, threads});
    mkdirSync(dirname(results), {recursive: true});
    writeFileSync(results, JSON.stringify(contextLine(root, threads, quick)) + "\n");
  }

  #stamped(line) {
    const at = new Date().toISOString().slice(11, 19), load = Math.round(loadavg()[0] * 100) / 100;
    return {...line, at, load};
  }
  #note(lines) {
    appendFileSync(this.results, lines.map((line) => JSON.stringify(line) + "\n").join(""));
  }
  #tell(text) {
    const seconds = Math.round((Date.now() - this.#begun) / 1000);
    process.stderr.write(`${String(seconds).padStart(5)} s  ${text}\n`);
  }

  async #probe() {
    const probe = join(this.root, "build/release/bench/probe");
    const lines = (await run([probe, String(this.threads)], this.root)).map((l) => this.#stamped(l));
    this.#reading = lines.at(-1).read_gb_per_s;
    return lines;
  }

  async #model(model, type, file) {
    if (existsSync(file)) return;
    this.#tell(`writing ${file}`);
    mkdirSync(dirname(file), {recursive: true});
    await run([join(this.root, "build/release/bench/make_model"), file, "--shape", model,
               "--type", type], this.root);
  }

  async #said(unit, {argv, tags}, before) {
    const command = typeof argv === "function" ? argv(before) : argv;
    return (await run(command, this.root)).map((line) => {
      const whole = {group: unit.group, ...unit.tags, ...tags, ...line};
      if (whole.what === "compare" && !(whole.worst_gap <= gapMost))
        throw new Error(`${unit.name}: llama.cpp's tokens are up to ${whole.worst_gap} nats ` +
                        "less likely to us: that is no rounding, one of both is wrong");
      return this.#stamped(whole);
    });
  }

  /** With a probe behind it, since the machine may be another before the next command has ended. */
  async #probed(unit, command, before) {
    const lines = [];
    for (let turn = 1; ; turn++) {
      const reading = this.#reading, said = await this.#said(unit, command, before);
      const probe = await this.#probe();
      const apart = Math.max(reading / this.#reading, this.#reading / reading);
      if (!command.reads || apart <= noisyFrom || turn === turnsMost)
        return [...lines, ...said, ...probe];
      this.#tell(`reading was ${apart.toFixed(1)}x another behind it: again`);
      lines.push(this.#stamped({what: "again", group: unit.group, apart}), ...probe);
    }
  }

  async #unit(unit) {
    const lines = [];
    for (const command of unit.commands) {
      const last = command === unit.commands.at(-1);
      const ours = command.tags.who === "lethe" || command.reads;
      lines.push(...await (ours || last ? this.#probed(unit, command, lines)
                                        : this.#said(unit, command, lines)));
    }
    return lines;
  }

  async run(units) {
    for (const unit of units) for (const need of unit.needs) await this.#model(...need);
    this.#note(await this.#probe());
    for (const [i, unit] of units.entries()) {
      this.#tell(`${i + 1} of ${units.length}  ${unit.name}`);
      try {
        this.#note(await this.#unit(unit));
      } catch (e) {
        if (!unit.may_fail) throw e;
        this.#tell(`${unit.name} is left out: ${e.message}`);
        this.#note(await this.#probe());
      }
    }
    this.#tell(`all lines are in ${this.results}`);
  }
}

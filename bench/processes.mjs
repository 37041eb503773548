// What benches of whole processes share: a folder that goes with the bench, processes that do, too,
// and the model file that is made when first asked for.
import {spawn, spawnSync} from "node:child_process";
import {existsSync, mkdirSync, mkdtempSync, rmSync} from "node:fs";
import {tmpdir} from "node:os";
import {join, resolve} from "node:path";
import {createInterface} from "node:readline";

export const root = resolve(import.meta.dirname, "..");
export const program = process.env.LETHE ?? join(root, "build/release/actors/lethe");

/** `name` is the bench's. */
export function benchOf(name) {
  const work = mkdtempSync(join(tmpdir(), `lethe-${name}-`));
  const running = new Set();
  process.on("exit", () => {
    for (const child of running) child.kill("SIGKILL");
    rmSync(work, {recursive: true, force: true});
  });
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(1));

  function giveUp(why) {
    console.error(`${name}: ${why}`);
    process.exit(1);
  }

  /** The file that --model names, else 1b in Q8_0. */
  function modelFile(named) {
    if (named && !existsSync(named)) giveUp(`--model ${named}: there is no such file`);
    if (named) return resolve(named);
    const file = join(root, "build/bench-models/1b-q8_0.gguf");
    if (existsSync(file)) return file;
    mkdirSync(join(root, "build/bench-models"), {recursive: true});
    const made = spawnSync(join(root, "build/release/bench/make_model"),
                           [file, "--shape", "1b", "--type", "q8_0"], {stdio: "inherit"});
    if (made.status !== 0) giveUp("make_model failed; ./lethe build makes it");
    return file;
  }

  /** `ended` gives its status when all that it said is read; `why` is what it said of itself. */
  function run(command, args) {
    const child = spawn(command, args, {stdio: ["ignore", "pipe", "pipe"],
                                        env: {...process.env, XDG_RUNTIME_DIR: work}});
    running.add(child);
    let said = "";
    child.stderr.on("data", (text) => { said += text; });
    const ended = new Promise((done) => child.on("close", (status) => {
      running.delete(child);
      done(status);
    }));
    return {child, ended, why: () => said};
  }

  /** A process that says `listening api URL` once it is there. */
  async function serve(command, args) {
    const {child, ended, why} = run(command, args);
    const url = await new Promise((found) => {
      createInterface({input: child.stdout}).on("line", (line) => {
        if (line.startsWith("listening api ")) found(line.split(" ")[2]);
      });
      ended.then(() => found(null));
    });
    if (!url) giveUp(`${command} ended: ${why()}`);
    return {url, child, why, async end() {
      child.kill("SIGTERM");
      await ended;
    }};
  }

  return {work, giveUp, modelFile, run, serve};
}

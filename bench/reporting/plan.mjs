// What a report measures, in order. A unit is measured between two probes, with one more behind
// each command of ours; its commands' lines get its group, and the tags. A command may need what the
// unit's lines said so far. One that `reads` has reading as its limit.
import {existsSync, readFileSync} from "node:fs";
import {join} from "node:path";

/** Of models with random weights, made when first asked for. */
const shapes = {decode: [["1b", "q8_0"], ["1b", "bf16"], ["1b", "q4_0"], ["1b", "q4_k_m"],
                         ["110m", "f32"]],
                prefill: [["1b", "q8_0"], ["1b", "q4_0"], ["1b", "bf16"], ["110m", "f32"]],
                int8Keys: ["q8_0", "q4_0"],  // long prompts of these with int8 keys and values, too
                streams: [["1b", "q8_0"], ["1b", "q4_0"]],
                tensor: ["q8_0", "q4_0"],  // of these only what attention takes differs
                small: [["110m", "q8_0"], ["110m", "q4_0"]]};

/** Programs of groups that a report is whole without, where there are such. */
const others = {serving: ["bench/serving", "--seconds", "60", "--turns", "1"],
                start: ["bench/start", "--runs", "5"],
                accuracy: ["build/release/bench/accuracy_bench"],
                tokenizing: ["build/release/bench/tokenize_bench"],
                sampling: ["build/release/bench/sampling_bench"]};
/** Published test data, for those that can do with it. */
const published = (root) => process.env.LETHE_VECTORS ?? join(root, "../shared/vectors");
const withData = {accuracy: (data) => ["--vectors", data],
                  tokenizing: (data) => [join(data, "tokenizers")]};

export function plan({root, threads, quick}) {
  const bin = join(root, "build/release/bench"), t = ["--threads", String(threads)];
  const file = (model, type) => join(root, "build/bench-models", `${model}-${type}.gguf`);
  const count = (whole, tried) => String(quick ? tried : whole);
  const ours = (path, ...more) => ({argv: [join(bin, "engine_bench"), path, ...t, ...more],
                                    tags: {who: "lethe"}});
  const reading = (command) => ({...command, reads: true});
  const peer = (path, ...more) =>
    ({argv: ["node", join(root, "bench/peer.mjs"), path, ...t, ...more], tags: {}});
  const judge = (path) => ({argv: (lines) => [join(bin, "engine_bench"), path, ...t, "--compare",
    lines.find((l) => l.who === "llama.cpp" && l.what === "decode").ids.join(",")], tags: {}});
  const unit = (group, [model, type], commands) =>
    ({group, name: `${group}: ${model} ${type}`, needs: [[model, type, file(model, type)]],
      commands: commands(file(model, type)), tags: {model, type}});

  const overInt8 = (path) => {
    const {argv, tags} = ours(path, "--kv", "int8", "--prompt", count(4096, 128));
    return {argv, tags: {...tags, kv: "int8"}};
  };
  // 4,096 tokens of a large model take the peer minutes.
  const peerPrompts = (model) => (model === "110m" ? count("512,4096", 64) : count(512, 64));
  const decode = shapes.decode.map((m) => unit("decode", m, (path) => [
    reading(ours(path, "--streams", "1", "--tokens", count(64, 4))),
    peer(path, "--streams", "1", "--tokens", count(32, 16)), judge(path)]));
  const prefill = shapes.prefill.map((m) => unit("prefill", m, (path) => [
    ours(path, "--prompt", count("512,4096", "64,128")),
    ...shapes.int8Keys.includes(m[1]) ? [overInt8(path)] : [],
    peer(path, "--prompt", peerPrompts(m[0]))]));
  const together = (path, streams) => ours(path, "--streams", streams, "--tokens", count(24, 4),
                                           "--context", count(256, 32));
  const streams = shapes.streams.map((m) => unit("streams", m, (path) => [
    together(path, count("32,16", "4")), reading(together(path, count("8,4,2,1", "2,1"))),
    peer(path, "--streams", count("32,8,1", "4,1"), "--tokens", count(12, 4), "--context",
         count(256, 32))]));
  const turn = (path) => [reading(ours(path, "--streams", "1", "--tokens", count(200, 8))),
                          peer(path, "--streams", "1", "--tokens", count(100, 16))];
  const small = shapes.small.map((m) => unit("small", m, (path) =>
    [...turn(path), ...turn(path), ...turn(path), judge(path)]));
  const attend = (kv, ...what) => ({argv: [join(bin, "attention_bench"), ...t, "--kv", kv, ...what],
                                    tags: {}});
  const attention = {group: "attention", name: "attention", needs: [], tags: {}, commands: [
    ...["f32", "bf16", "int8"].map((kv) =>
      reading(attend(kv, "--prompt", "0", "--context", count("4096,16384", "256,1024")))),
    attend("f32,bf16,int8", "--context", "0", "--prompt", count(4096, 256))]};
  const rounding = roundingHere();
  const tensor = rounding.length > 0
    ? tensorUnits({unit, ours, peer, attend, reading, count, rounding}) : [];
  const ranks = unit("ranks", ["1b", "q8_0"], (path) => [
    {argv: [join(bin, "ranks_bench"), path, "--count", String(Math.max(2, threads)),
            ...quick ? ["--rounds", "2", "--prompt", "32"] : []], tags: {}}]);
  const wide = unit("communicators", ["1b", "q8_0"], (path) => [
    {argv: [join(bin, "comm_bench"), join(root, "models/ember"), path,
            ...quick ? ["--seconds", "0.05"] : []], tags: {}}]);
  const communicators = {...wide, name: "communicators", tags: {}, may_fail: true};
  const step = {group: "step", name: "step: models/ember", needs: [], tags: {}, commands: [
    {argv: [join(bin, "step_bench"), join(root, "models/ember"),
            ...quick ? ["--tokens", "64"] : []], tags: {}}]};
  return [...decode, ...prefill, ...streams, attention, ...tensor, ...small, ranks, communicators,
          step, ...othersHere(root)];
}

/** Arithmetics that this processor rounds by, and their kernels. */
function roundingHere() {
  const cpu = existsSync("/proc/cpuinfo") ? readFileSync("/proc/cpuinfo", "utf8") : "";
  const has = (...flags) => flags.every((flag) => cpu.includes(` ${flag}`));
  const pairs = /cpu family\s*: 25\n/.test(cpu) ? "zen4_bf16" : "avx512bf16";
  return [...has("amx_bf16", "amx_int8", "avx512_bf16") ? [["tensor", "amx_tensor"]] : [],
          ...has("avx512_vnni", "avx512_bf16") ? [["pairs", pairs]] : []];
}

/** Each with exact arithmetic and with those that round, by turns. */
function tensorUnits({unit, ours, peer, attend, reading, count, rounding}) {
  const both = (make) => [["exact"], ...rounding].map(([arithmetic, isa]) => {
    const command = make(...isa ? ["--isa", isa] : []);
    return {...command, tags: {...command.tags, arithmetic}};
  });
  const keys = ["--kv", "bf16"], streams = count("32,16,8,4,2,1", "2,1");
  const whole = unit("tensor", ["1b", "bf16"], (path) => [
    ...both((...isa) => ours(path, ...isa, ...keys, "--prompt", count("512,4096", "64"))),
    ...both((...isa) => reading(ours(path, ...isa, ...keys, "--streams", streams, "--tokens",
                                     count(24, 4), "--context", count(256, 32)))),
    peer(path, "--prompt", count(512, 64)),
    peer(path, "--streams", count("32,8,1", "1"), "--tokens", count(12, 4), "--context",
         count(256, 32))]);
  const others = shapes.tensor.map((type) => unit("tensor", ["1b", type], (path) =>
    both((...isa) => ours(path, ...isa, ...keys, "--prompt", count(4096, 64)))));
  const attention = {group: "tensor", name: "tensor: attention", needs: [], tags: {}, commands:
    both((...isa) => reading(attend("bf16", ...isa, "--context", count("4096,16384", "256"),
                                    "--prompt", count(4096, 256))))};
  return [whole, ...others, attention];
}

function othersHere(root) {
  const data = published(root), there = existsSync(data);
  return Object.entries(others).filter(([, [program]]) => existsSync(join(root, program)))
    .map(([group, [program, ...more]]) =>
      ({group, name: group, needs: [], tags: {}, may_fail: true, commands: [{
        argv: [join(root, program), ...more, ...there ? withData[group]?.(data) ?? [] : []],
        tags: {}}]}));
}

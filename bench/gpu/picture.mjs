// Streams together on a GPU, as a picture.
//   picture.mjs OUT.svg FILE...     FILE: lines of model_bench or of its peers
import {readFileSync, writeFileSync} from "node:fs";

import {Picture} from "../reporting/svg.mjs";

const each = 360, height = 300, top = 92, left = 70, between = 130;
const ours = (type, arithmetic) =>
  (l) => l.by === "lethe" && l.type === type && l.arithmetic === arithmetic;
const curves = [
  {is: ours("bf16", "tensor"), says: "bf16, tensor", classes: "ours"},
  {is: ours("q8_0", "tensor"), says: "Q8_0, tensor", classes: "aim"},
  {is: ours("bf16", "exact"), says: "bf16, exact", classes: "ours dashed"},
  {is: ours("q8_0", "exact"), says: "Q8_0, exact", classes: "aim dashed"},
  {is: (l) => l.by === "torch", says: "PyTorch, bf16", classes: "peer"},
];
const ticks = [100, 200, 500, 1000, 2000, 5000, 10000, 20000];

/** Both axes are logarithmic. */
function panel(picture, name, lines, from) {
  const of = (line) => line.tokens_per_s;
  const low = Math.min(...lines.map(of)) * 0.8, high = Math.max(...lines.map(of)) * 1.25;
  const streams = [...new Set(lines.map((l) => l.streams))].sort((a, b) => a - b);
  const x = (n) => from + Math.log2(n) / Math.log2(streams.at(-1)) * each;
  const y = (v) => top + height - Math.log(v / low) / Math.log(high / low) * height;
  for (const t of ticks.filter((t) => t >= low && t <= high)) {
    picture.line(from, y(t), from + each, y(t), "grid");
    picture.text(from - 8, y(t) + 4, t.toLocaleString("en"), "quiet", "end");
  }
  for (const n of streams) picture.text(x(n), top + height + 18, n, "quiet", "middle");
  picture.text(from, top - 12, name);
  const points = (c) => lines.filter(c.is).map((l) => [x(l.streams), y(of(l))]);
  const drawn = curves.map((c) => ({...c, points: points(c)})).filter((c) => c.points.length);
  for (const c of drawn) picture.path(c.points, `${c.classes} line`);
  // Words at the ends of the curves, far enough from each other.
  let lowest = -Infinity;
  for (const c of drawn.sort((a, b) => a.points.at(-1)[1] - b.points.at(-1)[1])) {
    lowest = Math.max(lowest + 16, c.points.at(-1)[1] + 4);
    picture.text(from + each + 8, lowest, c.says, "quiet");
  }
}

const [out, ...files] = process.argv.slice(2);
if (!files.length) {
  console.error("usage: picture.mjs OUT.svg FILE..., files of lines of JSON");
  process.exit(2);
}
const linesOf = (file) => readFileSync(file, "utf8").trim().split("\n").map((l) => JSON.parse(l));
const lines = files.flatMap(linesOf).filter((l) => l.bench === "model_decode");
const models = [...new Set(lines.map((l) => l.model))].sort();
const device = lines.find((l) => l.by === "lethe").device.split(",")[0];
const picture = new Picture(left + models.length * (each + between), top + height + 40,
                            `Streams together on one ${device}`);
picture.text(20, 50, "tokens a second of all streams, over the number of streams", "quiet");
models.forEach((name, i) => {
  const of = lines.filter((l) => l.model === name);
  panel(picture, name.toUpperCase(), of, left + i * (each + between));
});
writeFileSync(out, picture.toString());

// The pictures of docs/performance, by file name.
import {attentionFigures, decodeFigures, otherFigures, prefillFigures,
        streamFigures} from "./figures.mjs";
import {Picture} from "./svg.mjs";

const number = (v) => (v >= 100 ? v.toFixed(0) : v >= 10 ? v.toFixed(1) : v.toFixed(2));

const percent = (share) => `${(share * 100).toFixed(0)} %`;

/** What the colours mean: [classes, words, shape] side by side. */
function legend(picture, x, y, entries) {
  for (const [classes, words, shape = "box"] of entries) {
    if (shape === "box") picture.box(x, y - 9, 14, 10, classes);
    if (shape === "line") picture.line(x, y - 4, x + 14, y - 4, classes);
    if (shape === "dot") picture.dot(x + 7, y - 4, classes);
    if (shape === "square") picture.square(x + 7, y - 4, classes);
    picture.text(x + 20, y, words, "quiet");
    x += 32 + words.length * 6.6;
  }
}

/** A bar for each figure, and one for the peer below it, against a limit that is the full width. */
function bars(title, under, figures, {most = 1, limitWords = "the limit"} = {}) {
  const left = 190, width = 400, right = 172, top = 78, hasPeer = figures.some((f) => f.peerShare);
  const step = hasPeer ? 46 : 32, bottom = top + figures.length * step;
  const picture = new Picture(left + width + right, bottom + 50, title);
  picture.text(20, 50, under, "quiet");
  const x = (share) => left + Math.min(share, most * 1.05) / most * width;
  for (let tick = 0; tick <= 5; ++tick) {
    const share = tick / 5 * most;
    picture.line(x(share), top - 8, x(share), bottom,
                 tick === 5 && limitWords ? "limit" : "grid");
    picture.text(x(share), bottom + 16, most === 1 ? percent(share) : number(share), "quiet",
                 "middle");
  }
  figures.forEach((f, i) => bar(picture, f, top + i * step, x, left, left + width + 30));
  legend(picture, 20, bottom + 38, [["ours", "Lethe"], ...hasPeer ? [["peer", "llama.cpp"]] : [],
    ...figures.some((f) => f.aim) ? [["aim", "aim", "line"]] : [],
    ...limitWords ? [["limit", limitWords, "line"]] : [],
    ...figures.some((f) => f.noisy) ? [["ours noisy", "noisy, no claim"]] : []]);
  return picture;
}

/** Words stand at `beside`, right of the limit. */
function bar(picture, f, y, x, left, beside) {
  const noisy = f.noisy ? " noisy" : "";
  picture.text(left - 12, y + (f.peerShare ? 19 : 13), f.label, "", "end");
  picture.box(left, y, x(f.share) - left, 17, `ours${noisy}`);
  picture.text(beside, y + 13, f.says);
  if (f.peerShare) {
    picture.box(left, y + 20, x(f.peerShare) - left, 12, `peer${noisy}`);
    picture.text(beside, y + 30, f.peerSays, "quiet");
  }
  if (f.aim === undefined) return;
  for (const classes of ["halo", "aim"]) picture.line(x(f.aim), y - 4, x(f.aim), y + 21, classes);
}

const tokens = (f) => ({...f, says: `${percent(f.share)}, ${number(f.ours)} tok/s`,
                        peerSays: f.peer && `${percent(f.peerShare)}, ${number(f.peer)} tok/s`});

const ticksBelow = (low, high) =>
  [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000].filter((t) => t >= low && t <= high);

/** Streams against tokens a second, both logarithmic, with the two limits as a roof. */
function roofline(picture, figures, left, top, width, height) {
  const all = figures.flatMap((f) => [f.ours, f.byReading, f.limit, ...f.peer ? [f.peer] : []]);
  const low = Math.min(...all) * 0.8, high = Math.max(...all, ...figures.map((f) => f.byProducts));
  const most = Math.max(...figures.map((f) => f.streams));
  const x = (n) => left + Math.log2(n) / Math.max(1, Math.log2(most)) * width;
  const y = (v) => top + height - Math.log(v / low) / Math.log(high * 1.15 / low) * height;
  for (const t of ticksBelow(low, high * 1.15)) {
    picture.line(left, y(t), left + width, y(t), "grid");
    picture.text(left - 8, y(t) + 4, t, "quiet", "end");
  }
  for (const f of figures)
    picture.text(x(f.streams), top + height + 18, f.streams, "quiet", "middle");
  const curve = (value) => figures.map((f) => [x(f.streams), y(value(f))]);
  picture.path([[left, top + height], ...curve((f) => f.limit), [left + width, top + height]],
               "room");
  picture.path(curve((f) => f.byReading), "limit");
  picture.path(curve((f) => f.byProducts), "limit dashed");
  picture.path(curve((f) => f.aim * f.limit), "aim");
  const peers = figures.filter((f) => f.peer);
  picture.path(peers.map((f) => [x(f.streams), y(f.peer)]), "peer line");
  picture.path(curve((f) => f.ours), "ours line");
  for (const f of peers) picture.square(x(f.streams), y(f.peer), "peer");
  for (const f of figures) picture.dot(x(f.streams), y(f.ours), f.noisy ? "ours noisy" : "ours");
  picture.text(left + 2, top - 12, `${figures[0].model} ${figures[0].type}`, "");
}

function streamsPlot(lines) {
  const figures = streamFigures(lines);
  const types = [...new Set(figures.map((f) => f.type))], each = 330;
  const picture = new Picture(60 + types.length * (each + 50), 430, "Streams together");
  picture.text(20, 50, "tokens a second of all streams, over the number of streams", "quiet");
  types.forEach((type, i) => roofline(picture, figures.filter((f) => f.type === type),
                                      60 + i * (each + 50), 96, each, 260));
  legend(picture, 20, 408, [["ours", "Lethe", "dot"], ["peer", "llama.cpp", "square"],
    ["limit", "limit by reading", "line"], ["limit dashed", "by products", "line"],
    ["aim", "aim", "line"],
    ...figures.some((f) => f.noisy) ? [["ours noisy", "noisy, no claim", "dot"]] : []]);
  return picture;
}

/** To a number whose fifths are short. */
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 3, 4, 5, 7.5, 10].find((n) => n * power >= value) * power;
}

function servingPlot(all) {
  const clients = [...new Set(all.map((l) => l.clients))].sort((a, b) => a - b);
  const speed = (who, n) =>
    all.find((l) => l.who === who && l.clients === n)?.tokens_per_second;
  const most = roundUp(Math.max(...all.map((l) => l.tokens_per_second ?? 0)));
  const says = (v) => v && `${number(v)} tok/s`;
  return bars("Serving through the API", "tokens a second of all clients", clients.map((n) => ({
    label: `${n} client${n === 1 ? "" : "s"}`, share: speed("lethe", n) ?? 0,
    peerShare: speed("llama.cpp", n), says: says(speed("lethe", n)) ?? "not measured",
    peerSays: says(speed("llama.cpp", n))})), {most, limitWords: ""});
}

/** {name: svg} of what the lines have. */
export function plots(lines) {
  const drawn = {};
  const put = (name, figures, draw) => {
    if (figures.length) drawn[name] = draw(figures).toString();
  };
  put("decode", decodeFigures(lines), (f) =>
    bars("Decode of one stream", "weights' bytes a second, as a share of the read bandwidth",
         f.map(tokens), {limitWords: "read bandwidth"}));
  put("prefill", prefillFigures(lines), (f) =>
    bars("Prompts", "operations a second, as a share of the int8 peak (quantized) or the FMA peak",
         f.map(tokens), {limitWords: "peak"}));
  put("streams", streamFigures(lines), () => streamsPlot(lines));
  put("attention", attentionFigures(lines), (all) =>
    bars("Attention alone", "decode: of the read bandwidth; a prompt: of the FMA peak",
         all.map((f) => ({...f, says: `${percent(f.share)}, ${number(f.ours)} ${f.unit}`}))));
  put("serving", otherFigures(lines).serving, servingPlot);
  return drawn;
}

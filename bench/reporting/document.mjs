// Puts the measured part into a document, between its two markers; what stands around them stays.
import {existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync} from "node:fs";
import {join} from "node:path";
import {needed} from "./figures.mjs";
import {plots} from "./plots.mjs";
import {measuredPart} from "./tables.mjs";

export const begin = "<!-- measured: begins here, written by bench/report -->";
export const end = "<!-- measured: ends here -->";

export function spliced(text, part, name) {
  const at = [begin, end].map((marker) => {
    const pieces = text.split(marker);
    if (pieces.length !== 2)
      throw new Error(`${name}: has ${pieces.length - 1} times "${marker}"; once is right`);
    return pieces[0].length;
  });
  if (at[1] < at[0]) throw new Error(`${name}: its measured part ends before it begins`);
  return `${text.slice(0, at[0])}${begin}\n\n${part}\n\n${text.slice(at[1])}`;
}

/** Refuses what would leave holes in a document that is kept. */
export function checkWhole(lines, name) {
  const missing = needed.filter((group) => !lines.some((l) => l.group === group));
  if (missing.length)
    throw new Error(`${name}: has no line of group ${missing.join(", ")}; measure it whole, or ` +
                    "render it elsewhere with --to FOLDER");
  if (lines[0].quick)
    throw new Error(`${name}: is of a quick run; render it elsewhere with --to FOLDER`);
}

/** FOLDER/performance.md and FOLDER/performance/NAME.svg; returns their names. */
export function write(lines, folder) {
  const page = join(folder, "performance.md"), pictures = join(folder, "performance");
  const before = existsSync(page) ? readFileSync(page, "utf8") : `${begin}\n${end}\n`;
  const text = spliced(before, measuredPart(lines), page), drawn = plots(lines);
  mkdirSync(pictures, {recursive: true});
  for (const old of readdirSync(pictures).filter((name) => name.endsWith(".svg")))
    rmSync(join(pictures, old));
  writeFileSync(page, text);
  const names = Object.entries(drawn).map(([name, svg]) => {
    writeFileSync(join(pictures, `${name}.svg`), svg);
    return join(pictures, `${name}.svg`);
  });
  return [page, ...names];
}

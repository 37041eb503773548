// Pictures that can be read on a white page and on a dark one: each has a ground of its own.

const escape = (text) => String(text).replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);

const style = `
  .ground {fill: #ffffff; stroke: #d1d9e0}
  text {font: 13px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2328}
  .title {font-size: 16px; font-weight: 600}
  .quiet {font-size: 12px; fill: #59636e}
  .grid {stroke: #d1d9e0; stroke-width: 1}
  .room {fill: #eef1f4}
  .ours {fill: #0a64c2; stroke: #0a64c2}
  .peer {fill: #c4650d; stroke: #c4650d}
  .limit {stroke: #59636e; fill: none; stroke-width: 2}
  .aim {stroke: #1a7f37; fill: none; stroke-width: 2; stroke-dasharray: 6 2}
  .halo {stroke: #ffffff; stroke-width: 4}
  path.line {fill: none; stroke-width: 2.5}  /* also in the dark: more than .ours says */
  .dashed {stroke-dasharray: 2 4}
  .noisy {fill-opacity: 0.25}
  @media (prefers-color-scheme: dark) {
    .ground {fill: #161b22; stroke: #30363d}
    text {fill: #e6edf3}
    .quiet {fill: #9aa4ae}
    .grid {stroke: #30363d}
    .room {fill: #222a33}
    .ours {fill: #4c9bf5; stroke: #4c9bf5}
    .peer {fill: #ef8f3c; stroke: #ef8f3c}
    .limit {stroke: #9aa4ae}
    .aim {stroke: #3fb950}
    .halo {stroke: #161b22}
  }`;

export class Picture {
  #parts = [];

  constructor(width, height, title) {
    Object.assign(this, {width, height, title});
    this.text(20, 30, title, "title");
  }

  text(x, y, content, classes = "", anchor = "start") {
    this.#parts.push(`<text x="${round(x)}" y="${round(y)}" text-anchor="${anchor}"` +
                     `${classes && ` class="${classes}"`}>${escape(content)}</text>`);
  }
  box(x, y, width, height, classes) {
    this.#parts.push(`<rect x="${round(x)}" y="${round(y)}" width="${round(Math.max(0, width))}" ` +
                     `height="${round(height)}" rx="2" class="${classes}"/>`);
  }
  line(x1, y1, x2, y2, classes) {
    this.path([[x1, y1], [x2, y2]], classes);
  }
  path(points, classes) {
    const d = points.map(([x, y], i) => `${i ? "L" : "M"}${round(x)} ${round(y)}`).join("");
    this.#parts.push(`<path d="${d}" class="${classes}"/>`);
  }
  dot(x, y, classes) {
    this.#parts.push(`<circle cx="${round(x)}" cy="${round(y)}" r="4.5" class="${classes}"/>`);
  }
  square(x, y, classes) {
    this.box(x - 4, y - 4, 8, 8, classes);
  }

  toString() {
    return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${this.width} ${this.height}" ` +
      `width="${this.width}" height="${this.height}" role="img" ` +
      `aria-label="${escape(this.title)}">\n<style>${style}\n</style>\n` +
      `<rect x="0.5" y="0.5" width="${this.width - 1}" height="${this.height - 1}" rx="8" ` +
      `class="ground"/>\n${this.#parts.join("\n")}\n</svg>\n`;
  }
}

const round = (v) => Math.round(v * 10) / 10;

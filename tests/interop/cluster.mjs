// A cluster for one test file: `lethe up` with a file of its own, on ports that are free.
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import OpenAI from 'openai';

export const program = process.env.LETHE_PROGRAM;
if (!program) throw new Error('LETHE_PROGRAM must name the built program');

export const tiny = new URL('../../models/tiny', import.meta.url).pathname;
let clusters = 0;

export function folder() {
  return mkdtempSync(join(tmpdir(), 'lethe-interop-'));
}

/// Waits until `good` gives something true; asks again and again, for so long.
export async function until(good, what, seconds = 30) {
  for (const end = Date.now() + seconds * 1000; Date.now() < end; await sleep(20)) {
    const value = await good();
    if (value) return value;
  }
  throw new Error(`not within ${seconds} s: ${what}`);
}

/// `lethe up FILE`, or what `arguments` say, as a process of its own. Its listeners' URLs are
/// members, by role.
export class Program {
  async start(roles) {
    this.child = spawn(program, this.arguments ?? ['up', this.file],
      { stdio: ['ignore', 'pipe', 'pipe'] });
    // A test that fails leaves it up, and must end all the same.
    this.held = [this.child, this.child.stdout, this.child.stderr];
    for (const h of this.held) h.unref();
    process.on('exit', () => this.over || this.child.kill('SIGKILL'));
    this.said = '';
    this.child.stderr.on('data', (text) => { this.said += text; });
    this.ended = new Promise((done) => {
      this.child.on('close', (code, signal) => { this.over = true; done({ code, signal }); });
    });
    createInterface({ input: this.child.stdout }).on('line', (line) => {
      const [word, role, url] = line.split(' ');
      if (word === 'listening') this[role] = url;
    });
    const listens = () => {
      if (this.over) throw new Error(`lethe ended:\n${this.said}`);
      return roles.every((role) => this[role]);
    };
    await until(listens, `${roles} listen`, 60);
  }

  /// How it ended, once it has.
  async gone() {
    for (const h of this.held) h.ref();
    return this.ended;
  }

  async end() {
    if (!this.over) this.child.kill('SIGTERM');
    return this.gone();
  }
}

export class Cluster extends Program {
  /// `toml` follows the listeners: further tables. `keys`: the texts of the key file.
  static async up({ model = tiny, toml = '', keys } = {}) {
    const c = new Cluster();
    c.model = model;
    c.folder = folder();
    if (keys) writeFileSync(join(c.folder, 'keys'), keys.join('\n') + '\n', { mode: 0o600 });
    c.file = join(c.folder, 'cluster.toml');
    writeFileSync(c.file, [
      `name = "interop-${process.pid}-${++clusters}"`,
      'profile = "lab"',
      `[model]\npath = "${model}"`,
      '[listen]\napi = "127.0.0.1:0"\nmetrics = "127.0.0.1:0"',
      keys ? 'api_keys = "keys"' : '',
      toml,
    ].join('\n'));
    await c.start();
    return c;
  }

  async start() {
    await super.start(['api', 'metrics']);
    const ready = async () => {
      if (this.over) throw new Error(`lethe up ended:\n${this.said}`);
      return (await fetch(`${this.metrics}/readyz`)).status === 200;
    };
    await until(ready, 'ready', 60).catch((why) => { throw new Error(`${why}\n${this.said}`); });
  }

  /// The official client. Without retries of its own unless asked: tests see what the server says.
  client(options = {}) {
    return new OpenAI({ baseURL: `${this.api}/v1`, apiKey: 'none', maxRetries: 0, ...options });
  }

  async number(name) {
    const text = await (await fetch(`${this.metrics}/metrics`)).text();
    const line = text.split('\n').find((l) => l.startsWith(`${name} `));
    if (!line) throw new Error(`no metric ${name}`);
    return Number(line.slice(name.length + 1));
  }

  async running(n) {
    await until(async () => await this.number('lethe:num_requests_running') === n, `${n} run`);
  }

  async down() {
    const how = await this.end();
    rmSync(this.folder, { recursive: true });
    return how;
  }
}

/// `lethe ARGUMENTS`, while this process goes on serving it.
export function letheMeanwhile(...args) {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  const ran = { stdout: '', stderr: '' };
  for (const from of ['stdout', 'stderr'])
    child[from].on('data', (text) => { ran[from] += text; });
  return new Promise((done) => { child.on('close', (status) => done({ ...ran, status })); });
}

/// `lethe ARGUMENTS`, to its end.
export function lethe(...args) {
  return spawnSync(program, args, { encoding: 'utf8' });
}

/// A stream's pieces put together, as a client shows them.
export async function gather(stream) {
  const all = { text: [], reason: [], chunks: 0, usage: null, tokens: [] };
  for await (const chunk of stream) {
    all.chunks += 1;
    all.usage = chunk.usage ?? all.usage;
    for (const c of chunk.choices) {
      const piece = c.delta ? c.delta.content : c.text;
      all.text[c.index] = (all.text[c.index] ?? '') + (piece ?? '');
      all.reason[c.index] = c.finish_reason ?? all.reason[c.index] ?? null;
      all.tokens[c.index] = [...(all.tokens[c.index] ?? []), ...(c.logprobs?.content ?? [])];
    }
  }
  return all;
}

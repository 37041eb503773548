// Chromium without a window, told what to do over a pipe (the DevTools protocol).
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from '../cluster.mjs';

export class Chromium {
  #asked = new Map();
  #next = 0;
  said = '';

  /// `more`: further switches. Its profile is a folder that ends with it.
  static async up(more = []) {
    const c = new Chromium();
    c.folder = mkdtempSync(join(tmpdir(), 'lethe-chromium-'));
    c.child = spawn('chromium', ['--headless=new', '--remote-debugging-pipe', '--no-first-run',
      '--disable-gpu', '--disable-dev-shm-usage', '--disable-background-networking',
      '--disable-component-update', '--disable-sync', '--no-proxy-server',
      '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
      ...process.getuid() === 0 ? ['--no-sandbox'] : [],
      `--user-data-dir=${c.folder}`, ...more, 'about:blank'],
    { stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe'], detached: true });
    c.exit = new Promise((done, failed) => { c.child.on('close', done).on('error', failed); });
    process.on('exit', () => c.#kill());
    c.child.stderr.on('data', (text) => { c.said += text; });
    c.child.stdio[3].on('error', () => {});
    c.#listen(c.child.stdio[4]);
    const { targetInfos } = await Promise.race([c.ask('Target.getTargets'),
      c.exit.then(() => { throw new Error(`chromium ended:\n${c.said}`); })]);
    const { targetId } = targetInfos.find(({ type }) => type === 'page');
    c.session = (await c.ask('Target.attachToTarget', { targetId, flatten: true })).sessionId;
    return c;
  }

  /// Its processes are a group.
  #kill() {
    try { process.kill(-this.child.pid, 'SIGKILL'); } catch { /* all have ended */ }
  }
  /// Ends it, as a person does; its profile stays.
  async stop() {
    this.session = undefined;
    this.ask('Browser.close').catch(() => {});
    await until(() => this.child.exitCode !== null || this.child.signalCode, 'chromium ends')
      .catch(() => {});
    this.#kill();
    await this.exit;
  }
  async down() {
    await this.stop();
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  }

  #listen(pipe) {
    let held = '';
    pipe.setEncoding('utf8').on('data', (text) => {
      const messages = (held + text).split('\0');
      held = messages.pop();
      for (const { id, result, error } of messages.map((m) => JSON.parse(m))) {
        const { done, failed } = this.#asked.get(id) ?? {};
        this.#asked.delete(id);
        if (error) failed?.(new Error(error.message));
        else done?.(result);
      }
    });
  }

  ask(method, params = {}) {
    const id = ++this.#next, sessionId = this.session;
    this.child.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    return new Promise((done, failed) => { this.#asked.set(id, { done, failed }); });
  }

  /// What the page says to an expression.
  async run(expression) {
    const { result, exceptionDetails } = await this.ask('Runtime.evaluate',
      { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? 'it threw');
    return result.value;
  }
  async open(url) {
    await this.ask('Page.navigate', { url });
    await this.until(`location.href.startsWith(${JSON.stringify(url)}) &&
      document.readyState === 'complete'`, 'the page is loaded');
  }
  /// Until the page says that it is so; what it shows, if it never is.
  async until(expression, what) {
    await until(() => this.run(`!!(${expression})`).catch(() => false), what, 120)
      .catch(async (why) => {
        throw new Error(`${why.message}\n${await this.run('document.body.innerText')}`);
      });
  }
}

// The private path for one test file: issuer, private cluster and relay, on ports that are free.
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'smol-toml';
import { PrivateClient } from './client/client.mjs';
import { Program, folder, letheMeanwhile, until } from './cluster.mjs';

export const ember = new URL('../../models/ember', import.meta.url).pathname;
let paths = 0;

async function command(...args) {
  const ran = await letheMeanwhile(...args);
  if (ran.status !== 0) throw new Error(`lethe ${args.join(' ')}:\n${ran.stderr}`);
  return ran.stdout;
}

export class PrivatePath {
  #parts = [];
  /// `issuer`: {url, secret} of one that runs already. `origins`: of pages that may ask.
  /// `before(role, url)`: the URL of what is put before gateway and relay. `profile`, `more`: of
  /// the cluster's file.
  static async up({ issuer, origins = [], before = (role, url) => url, profile = 'strict',
    more = '' } = {}) {
    const p = new PrivatePath();
    p.origins = JSON.stringify(origins);
    p.before = before;
    p.more = more;
    p.profile = profile;
    p.folder = folder();
    p.other = issuer;
    p.name = `private-${process.pid}-${++paths}`;
    await p.#start().catch(async (why) => {
      await p.down();
      throw why;
    });
    return p;
  }

  async #start() {
    const issuer = this.other?.url ?? await this.#startIssuer();
    if (this.other)
      writeFileSync(join(this.folder, 'gateway.secret'), `${this.other.secret}\n`, { mode: 0o600 });
    this.cluster = await this.#program('cluster', ['gateway', 'metrics'], `
profile = "${this.profile}"
[model]
path = "${ember}"
[listen]
metrics = "127.0.0.1:0"
[gateway]
listen = "127.0.0.1:0"
folder = "gateway"
issuer = "${issuer}"
issuer_secret = "gateway.secret"
${this.more}`);
    this.relay = await this.#program('relay', ['relay'], `
[relay]
listen = "127.0.0.1:0"
gateway = "${await this.before('gateway', this.cluster.gateway)}/"
origins = ${this.origins}`);
    const relay = await this.before('relay', this.relay.relay);
    this.trustText = await command('keys', 'public', this.cluster.file, '--relay', relay);
    this.trust = parse(this.trustText);
    await until(() => this.#published(), 'a roster is published', 60)
      .catch((why) => { throw new Error(`${why}\n${this.cluster.said}`); });
  }

  async #startIssuer() {
    this.issuer = await this.#program('issuer', ['issuer'], `
[issuer]
listen = "127.0.0.1:0"
folder = "issuer"
secret = "gateway.secret"
origins = ${this.origins}`);
    return this.issuer.issuer;
  }

  async #program(role, listeners, toml) {
    const made = this.#parts[this.#parts.push(new Program()) - 1];
    made.file = join(this.folder, `${role}.toml`);
    const name = role === 'cluster' ? this.name : `${this.name}-${role}`;
    writeFileSync(made.file, `name = "${name}"${toml}\n`);
    await made.start(listeners);
    return made;
  }

  /// The first roster comes once engines and issuer are there.
  #published() {
    const client = new PrivateClient({ trust: this.trust });
    return client.look().then(() => true, (why) => {
      if (!/missing|cut off|answers 50/.test(why.message)) throw why;
      return false;
    });
  }

  async account(name, quota) {
    const said = await command('account', 'add', this.issuer.file, name, '--quota', String(quota));
    return said.trim();
  }
  /// One that may buy, with an account of its own.
  async client(name, quota = 1000) {
    return new PrivateClient({ trust: this.trust, secret: await this.account(name, quota) });
  }
  async down() {
    const ends = [];
    for (const part of this.#parts.reverse()) if (part.child) ends.push(await part.end());
    rmSync(this.folder, { recursive: true });
    return ends;
  }
}

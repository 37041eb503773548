// The private path for one test file: issuer, private cluster and relay, on ports that are free.
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'smol-toml';
import { PrivateClient } from './client/client.mjs';
import { Program, folder, lethe, until } from './cluster.mjs';

export const ember = new URL('../../models/ember', import.meta.url).pathname;
let paths = 0;

function command(...args) {
  const ran = lethe(...args);
  if (ran.status !== 0) throw new Error(`lethe ${args.join(' ')}:\n${ran.stderr}`);
  return ran.stdout;
}

export class PrivatePath {
  #parts = [];
  static async up() {
    const p = new PrivatePath();
    p.folder = folder();
    p.name = `private-${process.pid}-${++paths}`;
    await p.#start().catch(async (why) => {
      await p.down();
      throw why;
    });
    return p;
  }

  async #start() {
    this.issuer = await this.#program('issuer', ['issuer'], `
[issuer]
listen = "127.0.0.1:0"
folder = "issuer"
secret = "gateway.secret"`);
    this.cluster = await this.#program('cluster', ['gateway', 'metrics'], `
[model]
path = "${ember}"
[listen]
metrics = "127.0.0.1:0"
[gateway]
listen = "127.0.0.1:0"
folder = "gateway"
issuer = "${this.issuer.issuer}"
issuer_secret = "gateway.secret"`);
    this.relay = await this.#program('relay', ['relay'], `
[relay]
listen = "127.0.0.1:0"
gateway = "${this.cluster.gateway}/"`);
    this.trust = parse(command('keys', 'public', this.cluster.file, '--relay', this.relay.relay));
    await until(() => this.#published(), 'a roster is published', 60)
      .catch((why) => { throw new Error(`${why}\n${this.cluster.said}`); });
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

  account(name, quota) {
    return command('account', 'add', this.issuer.file, name, '--quota', String(quota)).trim();
  }
  /// One that may buy, with an account of its own.
  client(name, quota = 1000) {
    return new PrivateClient({ trust: this.trust, secret: this.account(name, quota) });
  }
  async down() {
    const ends = [];
    for (const part of this.#parts.reverse()) if (part.child) ends.push(await part.end());
    rmSync(this.folder, { recursive: true });
    return ends;
  }
}

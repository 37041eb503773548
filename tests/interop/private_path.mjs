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
  static async up() {
    const p = new PrivatePath();
    p.folder = folder();
    p.name = `private-${process.pid}-${++paths}`;
    p.issuer = await p.#program('issuer', ['issuer'], `
[issuer]
listen = "127.0.0.1:0"
folder = "issuer"
secret = "gateway.secret"`);
    p.cluster = await p.#program('cluster', ['gateway', 'metrics'], `
[model]
path = "${ember}"
[listen]
metrics = "127.0.0.1:0"
[gateway]
listen = "127.0.0.1:0"
folder = "gateway"
issuer = "${p.issuer.issuer}"
issuer_secret = "gateway.secret"`);
    p.relay = await p.#program('relay', ['relay'], `
[relay]
listen = "127.0.0.1:0"
gateway = "${p.cluster.gateway}/"`);
    p.trust = parse(command('keys', 'public', p.cluster.file, '--relay', p.relay.relay));
    await until(() => p.#published(), `a roster is published\n${p.cluster.said}`, 60);
    return p;
  }

  async #program(role, listeners, toml) {
    const made = new Program();
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
  /// What the gateway counted.
  counts() {
    const status = JSON.parse(command('status', '--json', this.cluster.file));
    return status;
  }

  async down() {
    const ends = [];
    for (const part of [this.relay, this.cluster, this.issuer]) ends.push(await part.end());
    rmSync(this.folder, { recursive: true });
    return ends;
  }
}

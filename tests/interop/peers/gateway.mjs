// A gateway and its one node on @hpke/core, privacypass-ts and bhttp-js, in this process.
import { createServer } from 'node:http';
import { AuthorizationHeader, TOKEN_TYPES, TokenChallenge } from '@cloudflare/privacypass-ts';
import { BHttpDecoder, BHttpEncoder } from 'bhttp-js';
import { base64, base64url } from 'rfc4648';
import { be, concat, equal, hex, piecesIn, sha256, sized, utf8 } from '../client/bytes.mjs';
import { gather } from '../client/bhttp.mjs';
import { ChunkKeys, cutChunks, sealChunks } from '../client/chunks.mjs';
import { Frontier, entryBytes, leafHash } from '../client/log.mjs';
import { chunked, requestInfo, suiteBytes, suiteOf, whole } from '../client/ohttp.mjs';
import { readRoster, rootOf } from '../client/roster.mjs';
import {
  nodeOf, noteSigner, openAtNode, sealAnswer, signLeaf, signReceipt, signer, suite,
} from '../other_side.mjs';

const random = (bytes) => crypto.getRandomValues(new Uint8Array(bytes));
const release = new Uint8Array(32).fill(7), epoch = 1, capacity = 100;
const chunkBytes = 512;

export class PeerGateway {
  // What tests may spoil.
  onReceipt = (receipt) => receipt;
  onSealed = (answer) => answer;
  onRoster = (roster) => roster;
  chunkBytes = chunkBytes;
  full = false;
  redraws = 0; // of the policy, which is logged at the start
  shown = 0; // requests that came with a good token
  changed = 0;
  #spent = new Map(); // by nonce: what change is due for it, or null

  static async start(issuer, { origin = 'peer', redraws = 0 } = {}) {
    const made = Object.assign(new PeerGateway(), { issuer, origin, redraws });
    await made.#publish();
    made.server = createServer((request, response) => made.#serve(request, response));
    await new Promise((done) => { made.server.listen(0, '127.0.0.1', done); });
    made.server.unref();  // a test that fails does not stop it
    made.url = `http://127.0.0.1:${made.server.address().port}`;
    return made;
  }
  stop() {
    this.server.closeAllConnections();
    this.server.close();
  }

  /// What a trust file says.
  trust(relay) {
    return {
      log: this.log.text, witnesses: [this.witness.text], quorum: 1, relays: [relay],
      origin: this.origin, issuer: this.issuer.url, issuer_name: 'issuer', evidence: ['none'],
      policy: { name: 'embedded', candidates_max: 1, redraws_max: 2, nodes_min: 1,
        share_max_permille: 1000, roster_age_max_s: 3600 },
    };
  }

  async #publish() {
    this.log = await noteSigner(this.origin, 1, random(32));
    this.witness = await noteSigner(`${this.origin}-witness`, 4, random(32));
    this.node = await nodeOf(random(32), random(32));
    this.challenge = new TokenChallenge(2, 'issuer', new Uint8Array(0), [this.origin]);
    this.pair = await suiteOf(suite).hpke.kem.generateKeyPair();
    const pk = await suiteOf(suite).hpke.kem.serializePublicKey(this.pair.publicKey);
    this.keys = sized(concat(be(9, 1), be(suite.kem, 2), new Uint8Array(pk),
      sized(concat(be(suite.kdf, 2), be(suite.aead, 2)))));
    const logged = {
      release, policy: utf8(JSON.stringify(this.#policy())), 'ohttp-keys': this.keys,
      'issuer-keys': utf8(JSON.stringify(this.issuer.directory())),
      roster: await this.#makeRoster(),
    };
    this.entries = Object.entries(logged).map(
      ([kind, payload]) => entryBytes({ kind, epoch, payload }));
  }

  #policy() {
    return {
      name: 'embedded', candidates: 1, redraws: this.redraws, chunk_bytes: chunkBytes, tick_ms: 0, nodes_min: 1,
      share_max_permille: 1000, growth_max_permille: 0, roster_age_max_s: 3600, token_batch: 4,
      buyers_min: 0, request_buckets: [1024, 65536], evidence_kinds: ['none'],
      classes: { parrot: capacity }, token_challenge: base64.stringify(this.challenge.serialize()),
    };
  }

  /// Gives what is logged of it.
  async #makeRoster() {
    const now = Math.floor(Date.now() / 1000);
    const leaf = await signLeaf(this.node, await signer(random(32)),
      { modelClass: 'parrot', capacity, notBefore: now - 1, notAfter: now + 3600 });
    this.roster = concat(be(1, 1), be(epoch, 4), be(1, 4), sized(leaf));
    const root = await rootOf(await readRoster(this.roster));
    return concat(be(now, 8), root, be(1, 4), be(capacity, 8));
  }

  async #checkpoint() {
    const tree = new Frontier(), now = Math.floor(Date.now() / 1000);
    for (const entry of this.entries) await tree.append(await leafHash(entry));
    const body = `${this.origin}\n${tree.size}\n${base64.stringify(await tree.root())}\n`;
    return `${body}\n${await this.log.sign(body)}${await this.witness.cosign(body, now)}`;
  }

  async #serve(request, response) {
    const body = await gather(request);
    if (request.url === '/.well-known/ohttp-gateway')
      return response.writeHead(200, { 'content-type': 'application/ohttp-keys' }).end(this.keys);
    const form = [whole, chunked].find((f) => f.request === request.headers['content-type']);
    if (!form) return response.writeHead(415).end();
    try {
      const sealed = await this.#exchange(form, body);
      response.writeHead(200, { 'content-type': form.response,
        ...(form === chunked ? { incremental: '?1' } : {}) });
      for (let at = 0; at < sealed.length; at += 333) response.write(sealed.slice(at, at + 333));
      response.end();
    } catch (why) {
      response.writeHead(400, { 'content-type': 'text/plain' }).end(String(why));
    }
  }

  /// Opens the outer layer, and seals what it is answered with.
  async #exchange(form, body) {
    const head = body.slice(0, 7), enc = body.slice(7, 39), content = body.slice(39);
    if (!equal(head, concat(be(9, 1), suiteBytes(suite)))) throw new Error('another key');
    const context = await suiteOf(suite).hpke.createRecipientContext({ enc: enc.buffer,
      recipientKey: this.pair.privateKey, info: requestInfo(form.requestLabel, head) });
    const parts = [];
    if (form === whole) parts.push(new Uint8Array(await context.open(content)));
    else for await (const [chunk, last] of cutChunks(piecesIn([content]), 0, 'request'))
      parts.push(new Uint8Array(await context.open(chunk, utf8(last ? 'final' : ''))));
    const answer = await this.#route(new BHttpDecoder().decodeRequest(concat(...parts)));
    const plain = await new BHttpEncoder().encodeResponse(answer);
    const nonce = random(16), secret = await context.export(utf8(form.responseLabel), 16);
    const keys = await ChunkKeys.from(secret, concat(enc, nonce), 16);
    return concat(nonce, form === whole ? await keys.seal(plain)
      : await sealChunks(plain, (piece, last) => keys.seal(piece, last)));
  }

  async #route(request) {
    const { pathname } = new URL(request.url);
    const served = (bytes, type = 'application/octet-stream') =>
      new Response(bytes, { headers: { 'content-type': type } });
    if (pathname === '/checkpoint') return served(await this.#checkpoint(), 'text/plain');
    if (pathname === `/tile/entries/000.p/${this.entries.length}`)
      return served(concat(...this.entries.map(sized)));
    if (pathname === `/roster/${epoch}`)
      return served(this.onRoster(this.roster), 'application/lethe-roster');
    if (pathname === '/sealed') return this.#sealed(request);
    if (pathname === '/change') return this.#change(request);
    return new Response('{}', { status: 404 });
  }

  #refuse(status, change) {
    const headers = { 'content-type': 'application/problem+json' };
    if (change) headers['lethe-change'] = change;
    return new Response('{}', { status, headers });
  }

  async #sealed(request) {
    const [given] = AuthorizationHeader.parse(TOKEN_TYPES.BLIND_RSA,
      request.headers.get('authorization') ?? '');
    const digest = await sha256(this.challenge.serialize());
    if (!given || !equal(given.token.authInput.challengeDigest, digest) ||
        !await this.issuer.verify(given.token)) return this.#refuse(401);
    const nonce = hex(given.token.authInput.nonce);
    if (this.#spent.has(nonce)) return this.#refuse(403, 'none');
    this.#spent.set(nonce, null);
    this.shown += 1;
    if (this.full) {
      this.#spent.set(nonce, base64url.parse(request.headers.get('lethe-change')));
      return this.#refuse(503, 'due');
    }
    const message = new Uint8Array(await request.arrayBuffer());
    const opened = await openAtNode(this.node, message, given.token.serialize()).catch(() => null);
    if (!opened) return this.#refuse(400, 'none');
    return new Response(this.onSealed(await this.#answer(opened)),
      { headers: { 'content-type': 'application/lethe-sealed-res' } });
  }

  /// The node's: it says again what was said, in pieces of 40 bytes.
  async #answer(opened) {
    const request = new BHttpDecoder().decodeRequest(opened.plain);
    const { messages: [{ content }], stream } = await request.json();
    const message = { role: 'assistant', content: `${content}!` };
    const json = JSON.stringify({ object: 'chat.completion', model: 'parrot',
      choices: [{ index: 0, finish_reason: 'stop', [stream ? 'delta' : 'message']: message }] });
    const type = stream ? 'text/event-stream' : 'application/json';
    const answer = await new BHttpEncoder().encodeResponse(new Response(
      stream ? `data: ${json}\n\ndata: [DONE]\n\n` : json, { headers: { 'content-type': type } }));
    const pieces = [];
    for (let at = 0; at < answer.length; at += 40) pieces.push(answer.slice(at, at + 40));
    const receipt = await signReceipt(this.node, this.onReceipt({ ...opened, release, arenas: 1,
      bytesWiped: answer.length }));
    return sealAnswer(this.node, opened, pieces, receipt, this.chunkBytes);
  }

  async #change(request) {
    const body = new Uint8Array(await request.arrayBuffer());
    const due = this.#spent.get(hex(body.slice(2, 34)));
    if (!due || !equal(due, body.slice(354))) return this.#refuse(403);
    this.changed += 1;
    return new Response((await this.issuer.sign(body.slice(354))).serialize(),
      { headers: { 'content-type': 'application/private-token-response' } });
  }
}

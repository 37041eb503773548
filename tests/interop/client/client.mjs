// One call of the private path: keys, log, roster, draw, token, seal, relay, answer, receipt.
import { base64, base64url } from 'rfc4648';
import { equal, fetchFrom, piecesOf, textOf, utf8 } from './bytes.mjs';
import { encodeRequest, gather, openParts, openResponse, pad } from './bhttp.mjs';
import { LogReader, readNoteKey } from './log.mjs';
import { chunked, readKeys, sealRequest, whole } from './ohttp.mjs';
import { checkRoster, drawNodes, verifyRoster } from './roster.mjs';
import { checkRefusal, sealToNodes, shapeOf } from './sealed.mjs';
import * as tokens from './tokens.mjs';

const sealedType = 'application/lethe-sealed-req', claimType = 'application/lethe-change';

/// What gateway or node refused. `change` is what the gateway says of the token: 'due', 'none', or
/// null where nothing was spent. `claim` gets a due one back.
export class Refused extends Error {
  constructor(status, headers, text, claim = null) {
    super(`refused with ${status}: ${text}`);
    this.status = status;
    this.headers = headers;
    this.change = headers.get('lethe-change');
    this.claim = claim;
  }
}

/// An answer of the API. All of it is there once `content` or `events` ended; `proof`, from then on
/// a promise, gives the receipt that follows the padding.
export class Answer {
  proof = null;
  #sealed;
  constructor(opened, sealed, release) {
    this.status = opened.status;
    this.headers = opened.headers;
    this.release = release;
    this.content = this.#said(opened);
    this.#sealed = sealed;
  }
  async* #said(opened) {
    yield* opened.content;
    this.proof = this.#prove(opened);
    this.proof.catch(() => {}); // whoever awaits it is told
  }
  async #prove(opened) {
    await opened.padding();
    const { receipt } = this.#sealed;
    if (!equal(receipt.release, this.release))
      throw new Error('receipt: the node runs another release than the log says');
    return receipt;
  }
  async json() { return JSON.parse(textOf(await gather(this.content))); }
  /// Server-sent events: each `data:` as JSON, without the closing [DONE].
  async* events() {
    const decoder = new TextDecoder();
    let held = '';
    for await (const piece of this.content) {
      held += decoder.decode(piece, { stream: true });
      const lines = held.split('\n');
      held = lines.pop();
      for (const line of lines)
        if (line.startsWith('data: ') && line !== 'data: [DONE]') yield JSON.parse(line.slice(6));
    }
  }
}

/// The trust file's policy bounds, against what is logged.
function checkPolicy(policy, challenge, trust) {
  const bounds = trust.policy;
  const good = policy.name === bounds.name && policy.candidates <= bounds.candidates_max &&
    policy.redraws <= bounds.redraws_max && policy.nodes_min >= bounds.nodes_min &&
    policy.share_max_permille <= bounds.share_max_permille &&
    policy.roster_age_max_s <= bounds.roster_age_max_s;
  const shapes = ['off', 'size', 'size_tick'], shape = shapeOf(policy);
  if (shapes.indexOf(shape) < shapes.indexOf(bounds.shape ?? 'size') ||
      (shape === 'off' && policy.name === 'strict'))
    throw new Error(`policy: the shape of answers is "${shape}"`);
  if (!good) throw new Error('policy: it is beyond what the trust file accepts');
  if (challenge.issuerName !== trust.issuer_name || challenge.redemptionContext.length > 0 ||
      String(challenge.originInfo) !== trust.origin)
    throw new Error("policy: its challenge is not the trust file's");
}

export class PrivateClient {
  #log = null;
  #view = null;
  #wallet = [];
  /// `trust`: what `lethe keys public` prints, as an object. `secret`: the account's at the issuer.
  constructor({ trust, secret }) {
    this.trust = trust;
    this.secret = secret;
    this.relay = trust.relays[0].replace(/\/$/, '');
  }

  /// The gateway's keys, as the relay passes them on.
  async fetchKeys() {
    const answer = await fetchFrom('relay', `${this.relay}/.well-known/ohttp-gateway`);
    if (answer.status !== 200) throw new Error(`relay: it answers ${answer.status}`);
    return new Uint8Array(await answer.arrayBuffer());
  }

  /// A request inside the outer layer, in either form; gives its answer as it comes.
  async send(config, message, form = whole) {
    const sealed = await sealRequest(config, message, form);
    const headers = { 'content-type': sealed.type };
    if (form === chunked) headers.incremental = '?1';
    const answer = await fetchFrom('relay', `${this.relay}/`,
      { method: 'POST', headers, body: sealed.body });
    if (answer.status !== 200)
      throw new Refused(answer.status, answer.headers, await answer.text());
    if (answer.headers.get('content-type') !== sealed.answerType)
      throw new Error('gateway: its answer is of another type than the request');
    return openResponse(sealed.open(piecesOf(answer.body)));
  }

  async #page(config, path) {
    const answer = await this.send(config, await encodeRequest(this.trust.origin, path));
    if (answer.status !== 200) throw new Error(`gateway: ${path}: it answers ${answer.status}`);
    return gather(answer.content);
  }

  /// Looks at log, policy and roster, and checks them against each other and the trust file.
  async look() {
    const shown = await this.fetchKeys(), [config] = readKeys(shown);
    this.#log ??= new LogReader({
      log: await readNoteKey(this.trust.log), quorum: this.trust.quorum,
      witnesses: await Promise.all(this.trust.witnesses.map(readNoteKey)),
    });
    const { size, when } = await this.#log.read((path) => this.#page(config, `/${path}`));
    const { newest } = this.#log;
    for (const kind of ['release', 'roster', 'ohttp-keys', 'issuer-keys', 'policy'])
      if (!newest[kind]) throw new Error(`log: missing ${kind}`);
    if (!equal(newest['ohttp-keys'].payload, shown))
      throw new Error('gateway keys: those that the relay passes on are not the logged ones');
    const policy = JSON.parse(textOf(newest.policy.payload));
    const challenge = tokens.readChallenge(base64.parse(policy.token_challenge));
    checkPolicy(policy, challenge, this.trust);
    const directory = JSON.parse(textOf(newest['issuer-keys'].payload));
    const roster = await this.#roster(config, newest.roster, policy, when);
    const release = newest.release.payload;
    return this.#view = { size, config, policy, challenge, directory, roster, release };
  }

  async #roster(config, logged, policy, when) {
    const roster = await verifyRoster(await this.#page(config, `/roster/${logged.epoch}`), logged);
    checkRoster(roster, policy, this.#view?.roster);
    if (roster.leaves.some((leaf) => !this.trust.evidence.includes(leaf.evidenceKind)))
      throw new Error('roster: evidence that the trust file does not accept');
    if (when - roster.notBefore > policy.roster_age_max_s) throw new Error('log: stale roster');
    return roster;
  }

  /// The last view, while its roster's keys are good.
  async view() {
    const over = this.#view &&
      Math.min(...this.#view.roster.leaves.map((leaf) => leaf.notAfter)) * 1000 <= Date.now();
    return this.#view && !over ? this.#view : this.look();
  }

  /// One purchase, of the size that everyone buys: never because of a request.
  async buy() {
    const { challenge, directory, policy } = await this.view();
    this.#wallet.push(...await tokens.buyBatch({
      url: this.trust.issuer, secret: this.secret, challenge, count: policy.token_batch,
      key: tokens.keyToUse(directory) }));
  }
  get tokensLeft() { return this.#wallet.length; }

  /// In random order.
  take() {
    if (this.#wallet.length === 0) throw new Error('wallet: no token is left; buy');
    const at = crypto.getRandomValues(new Uint32Array(1))[0] % this.#wallet.length;
    return this.#wallet.splice(at, 1)[0];
  }

  /// Seals a body to freshly drawn nodes.
  async seal(path, body, token = this.take()) {
    const { policy, roster, challenge, directory } = await this.view();
    const nodes = drawNodes(roster, policy.candidates);
    const message = pad(await encodeRequest(this.trust.origin, path, {
      method: 'POST', headers: { 'content-type': 'application/json' },
      body: utf8(JSON.stringify(body)) }), policy.request_buckets);
    const sealed = await sealToNodes(message, nodes, roster.epoch, token.serialize(),
      policy.chunk_bytes);
    const change = await tokens.ask(challenge, tokens.keyToUse(directory));
    return { ...sealed, nodes, epoch: roster.epoch, token, change };
  }

  /// What goes to the gateway; `more` headers are for tests.
  outer({ message, token, change }, more = {}) {
    return encodeRequest(this.trust.origin, '/sealed', { method: 'POST', body: message, headers: {
      'content-type': sealedType, authorization: tokens.authorization(token),
      'lethe-change': change.field, ...more } });
  }

  /// A call of the API, answered as it comes. One draw: who asks again after a refusal takes a new
  /// token, and counts its draws (`policy.redraws`).
  async ask(path, body) {
    const { config, release } = await this.view();
    const sealed = await this.seal(path, body);
    const answer = await this.send(config, await this.outer(sealed), chunked);
    if (answer.status !== 200) throw await this.#refused(answer, sealed);
    const opened = await openParts(sealed.answer.open(answer.content));
    return new Answer(opened, sealed.answer, release);
  }

  async #refused({ status, headers, content }, sealed) {
    const text = textOf(await gather(content));
    const signed = headers.get('lethe-refusal');
    if (signed) await checkRefusal(base64url.parse(signed, { loose: true }), sealed, status);
    return new Refused(status, headers, text, () => this.claim(sealed));
  }

  /// Change for a token whose request failed, into the wallet.
  async claim({ token, change }) {
    const { config } = await this.view();
    const body = new Uint8Array([...token.serialize(), ...change.bytes]);
    const request = await encodeRequest(this.trust.origin, '/change',
      { method: 'POST', headers: { 'content-type': claimType }, body });
    const { status, headers, content } = await this.send(config, request);
    const bytes = await gather(content);
    if (status !== 200) throw new Refused(status, headers, textOf(bytes));
    this.#wallet.push(await change.finish(bytes));
  }

  /// A whole chat completion, and its receipt.
  async chat(body) {
    const answer = await this.ask('/v1/chat/completions', body);
    const json = await answer.json();
    return { status: answer.status, json, receipt: await answer.proof };
  }

  /// Its chunks as they are made.
  async* stream(body) {
    const answer = await this.ask('/v1/chat/completions', { ...body, stream: true });
    if (answer.status !== 200)
      throw new Refused(answer.status, answer.headers, textOf(await gather(answer.content)));
    yield* answer.events();
    await answer.proof;
  }
}

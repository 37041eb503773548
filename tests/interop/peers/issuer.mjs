// An issuer on privacypass-ts, in this process: what it sells, our client and our gateway take.
import { createServer } from 'node:http';
import {
  MediaType, PRIVATE_TOKEN_ISSUER_DIRECTORY, TOKEN_TYPES, Token, genericBatched, publicVerif,
} from '@cloudflare/privacypass-ts';
import { base64url } from 'rfc4648';
import { equal } from '../client/bytes.mjs';
import { gather } from '../client/bhttp.mjs';

const { BlindRSAMode, Issuer, TokenRequest, getPublicKeyBytes } = publicVerif;
const tokenBytes = 354;

export class PeerIssuer {
  counts = { one: 0, batch: 0, changed: 0 };
  /// `secret` is the gateway's, `account` that of whoever buys, `page` the origin of one that may.
  static async start({ secret, account, page }) {
    const made = Object.assign(new PeerIssuer(), { secret, account });
    made.forPages = page ? { 'access-control-allow-origin': page,
      'access-control-allow-headers': 'authorization, content-type' } : {};
    const { privateKey, publicKey } = await Issuer.generateKey(BlindRSAMode.PSS,
      { modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]) });
    made.issuer = new Issuer(BlindRSAMode.PSS, 'issuer', privateKey, publicKey);
    made.publicKey = publicKey;
    made.spki = await getPublicKeyBytes(publicKey);
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

  directory() {
    return { 'issuer-request-uri': '/token-request',
      'token-keys': [{ 'token-type': 2, 'token-key': base64url.stringify(this.spki) }] };
  }

  async #serve(request, response) {
    if (request.method === 'OPTIONS') return response.writeHead(204, this.forPages).end();
    const answer = await this.#answer(request).catch((why) => [400, 'text/plain', String(why)]);
    response.writeHead(answer[0], { ...this.forPages, 'content-type': answer[1] }).end(answer[2]);
  }

  async #answer(request) {
    const body = await gather(request);
    const knows = (secret) => request.headers.authorization === `Bearer ${secret}`;
    const is = (method, path) => request.method === method && request.url === path;
    if (is('GET', PRIVATE_TOKEN_ISSUER_DIRECTORY))
      return [200, MediaType.PRIVATE_TOKEN_ISSUER_DIRECTORY, JSON.stringify(this.directory())];
    const wanted = request.url === '/change' ? this.secret : this.account;
    if (!knows(wanted)) return [401, 'text/plain', ''];
    if (is('POST', '/token-request')) return this.#one(body);
    if (is('POST', '/token-request-batch')) return this.#batch(body);
    if (is('POST', '/change')) return this.#change(body);
    return [404, 'text/plain', ''];
  }

  async sign(request) {
    return this.issuer.issue(TokenRequest.deserialize(TOKEN_TYPES.BLIND_RSA, request));
  }
  async #one(body) {
    this.counts.one += 1;
    return [200, MediaType.PRIVATE_TOKEN_RESPONSE, (await this.sign(body)).serialize()];
  }
  async #batch(body) {
    const requests = genericBatched.BatchedTokenRequest.deserialize(body);
    this.counts.batch += requests.tokenRequests.length;
    const signed = await new genericBatched.Issuer(this.issuer).issue(requests);
    return [200, MediaType.ARBITRARY_BATCHED_TOKEN_RESPONSE, signed.serialize()];
  }
  /// token ‖ TokenRequest, from the gateway.
  async #change(body) {
    const token = Token.deserialize(TOKEN_TYPES.BLIND_RSA, body.slice(0, tokenBytes));
    if (!await this.verify(token)) return [403, 'text/plain', ''];
    this.counts.changed += 1;
    return [200, MediaType.PRIVATE_TOKEN_RESPONSE,
      (await this.sign(body.slice(tokenBytes))).serialize()];
  }
  async verify(token) {
    const id = new Uint8Array(await crypto.subtle.digest('SHA-256', this.spki));
    return equal(token.authInput.tokenKeyId, id) && this.issuer.verify(token);
  }
}

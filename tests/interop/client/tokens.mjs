// Tokens (docs/PROTOCOL.md, section 7), by privacypass-ts: type 2, one by one or a batch.
import {
  AuthorizationHeader, MediaType, TokenChallenge, genericBatched, publicVerif, sendTokenRequest,
} from '@cloudflare/privacypass-ts';
import { base64url } from 'rfc4648';
import { fetchFrom } from './bytes.mjs';

const { BlindRSAMode, Client, TokenResponse } = publicVerif;

export const readChallenge = (bytes) => TokenChallenge.deserialize(bytes.slice());

/// The key of a directory that is to be used now: the first that is valid already.
export function keyToUse(directory, nowS = Date.now() / 1000) {
  const key = directory['token-keys'].find(
    (k) => k['token-type'] === 2 && (k['not-before'] ?? 0) <= nowS);
  if (!key) throw new Error("directory: no issuer's key is valid yet");
  return base64url.parse(key['token-key'], { loose: true });
}

/// A blinded request: `bytes`, and what makes a token of the answer to it.
export async function ask(challenge, key) {
  const client = new Client(BlindRSAMode.PSS);
  const request = await client.createTokenRequest(challenge, key);
  return {
    request,
    bytes: request.serialize(),
    field: base64url.stringify(request.serialize()),
    finish: (response) => client.finalize(TokenResponse.deserialize(response)),
  };
}

const bearer = (secret) => new Headers({ authorization: `Bearer ${secret}` });

export async function buyOne({ url, secret, challenge, key }) {
  const blinded = await ask(challenge, key);
  return blinded.finish(await sendTokenRequest(blinded.bytes, `${url}/token-request`,
    bearer(secret)));
}

/// As many as everyone buys at once.
export async function buyBatch({ url, secret, challenge, key, count }) {
  const asks = [];
  for (let i = 0; i < count; ++i) asks.push(await ask(challenge, key));
  const batch = new genericBatched.Client();
  const requests = asks.map((a) => new genericBatched.TokenRequest(a.request));
  const headers = bearer(secret);
  headers.set('content-type', MediaType.ARBITRARY_BATCHED_TOKEN_REQUEST);
  const body = batch.createTokenRequest(requests).serialize();
  const answer = await fetchFrom('issuer', `${url}/token-request-batch`,
    { method: 'POST', headers, body });
  const bytes = new Uint8Array(await answer.arrayBuffer());
  if (answer.status !== 200) throw new Error(`issuer: it answers ${answer.status}`);
  if (answer.headers.get('content-type') !== MediaType.ARBITRARY_BATCHED_TOKEN_RESPONSE)
    throw new Error('issuer: its answer is of another type');
  const { tokenResponses } = batch.deserializeTokenResponse(bytes);
  if (tokenResponses.length !== count) throw new Error('issuer: not as many as were asked for');
  const tokens = [];
  for (const [i, { tokenResponse }] of tokenResponses.entries())
    if (tokenResponse) tokens.push(await asks[i].finish(tokenResponse.serialize()));
  return tokens;
}

/// What `authorization` says of a token.
export const authorization = (token) => new AuthorizationHeader(token).toString(true);

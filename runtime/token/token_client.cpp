#include "runtime/token/token_client.hpp"

#include <algorithm>

#include "runtime/crypto/key_bytes.hpp"
#include "runtime/crypto/random.hpp"
#include "runtime/token/token_limits.hpp"

namespace lethe {

namespace {

/// Type, nonce, challenge and key: what the issuer signs blindly.
secret_bytes message_of(const token_key& key, const hash32& challenge_digest, bytes_view nonce) {
  secret_bytes out(private_token::signed_bytes);
  auto to = out.bytes();
  to[1] = std::byte{token_type_blind_rsa};
  auto at = std::ranges::copy(nonce, to.begin() + 2).out;
  at = std::ranges::copy(challenge_digest, at).out;
  std::ranges::copy(key.id(), at);
  return out;
}

}  // namespace

pending_token::pending_token(secret_bytes message, blinding blind, uint8_t short_key_id)
    : signed_(std::move(message)), blinding_(std::move(blind)) {
  request_.short_key_id = short_key_id;
  std::ranges::copy(blinding_.blinded(), request_.blinded.begin());
}

result<pending_token> pending_token::make(const token_key& key, const hash32& challenge_digest) {
  key_bytes nonce(sizeof(hash32));
  fill_random(nonce.bytes());
  secret_bytes message = message_of(key, challenge_digest, nonce.view());
  auto blind = blinding::make(key.rsa(), message.view());
  if (!blind) return blind.why();
  return pending_token(std::move(message), *std::move(blind), key.short_id());
}

result<pending_token> pending_token::make(const token_key& key, const hash32& challenge_digest,
                                          const hash32& nonce, const blind_choices& choices) {
  secret_bytes message = message_of(key, challenge_digest, nonce);
  auto blind = blinding::make(key.rsa(), message.view(), choices);
  if (!blind) return blind.why();
  return pending_token(std::move(message), *std::move(blind), key.short_id());
}

result<private_token> pending_token::finish(const token_key& key, bytes_view response) const {
  auto answer = read_token_response(response);
  if (!answer) return answer.why();
  auto signature = blinding_.finalize(key.rsa(), signed_.view(), *answer);
  if (!signature) return signature.why();
  secret_bytes whole(private_token::wire_bytes);
  auto at = std::ranges::copy(signed_.view(), whole.bytes().begin()).out;
  std::ranges::copy(*signature, at);
  wipe(signature->data(), signature->size());
  return private_token::from_bytes(whole.view());
}

result<token_purchase> token_purchase::make(const token_key& key, const hash32& challenge_digest,
                                            size_t count) {
  if (count < 1 || count > limits::token_batch_max)
    return fail("token purchase: {} tokens; 1 to {}", count, limits::token_batch_max);
  std::vector<pending_token> pending;
  pending.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    auto made = pending_token::make(key, challenge_digest);
    if (!made) return made.why();
    pending.push_back(*std::move(made));
  }
  return token_purchase(std::move(pending));
}

std::vector<std::byte> token_purchase::request() const {
  std::vector<token_request> requests;
  for (const auto& p : pending_) requests.push_back(p.request());
  return write_batch_request(requests);
}

result<bought_tokens> token_purchase::finish(const token_key& key,
                                             bytes_view batch_response) const {
  auto answer = read_batch_response(batch_response);
  if (!answer) return answer.why();
  if (answer->size() != pending_.size())
    return fail("token purchase: {} answers to {} requests", answer->size(), pending_.size());
  bought_tokens bought;
  bought.tokens.reserve(pending_.size());
  for (size_t i = 0; i < pending_.size(); ++i) {
    const auto& one = (*answer)[i];
    if (!one) {
      ++bought.refused;
    } else if (auto token = pending_[i].finish(key, *one)) {
      bought.tokens.push_back(*token);
    } else {
      ++bought.wrong;
    }
  }
  return bought;
}

}  // namespace lethe

#pragma once

#include "runtime/token/private_token.hpp"
#include "runtime/token/token_directory.hpp"
#include "runtime/token/token_request.hpp"

namespace lethe {

/// What an issuer says to a request: 200, 206 if a batch is signed in part, 422 if nothing is, 500
/// if its key is broken. `why` is for the issuer's log and names no content.
struct issuer_answer {
  uint32_t status = 200;
  std::vector<std::byte> body;
  std::string why;
};

/// A spent token that its node did not serve: what a store records before `sign` (at most one
/// request digest for each key and nonce).
struct change_claim {
  hash32 key_id{}, nonce{};
  hash32 request_digest{};
  token_request request;
};

/// An issuer's keys, and what it signs with them. It reads no clock and stores nothing: each call
/// says what time it is. The current key is the youngest that is already valid; the one before it
/// still redeems, and signs change that was asked for under it.
class token_issuer {
 public:
  /// No two keys have the same time or the same last byte of their ids: make another one.
  result<void> add(issuer_key key, uint64_t not_before_s);
  /// Drops the keys before the previous one.
  void retire(uint64_t now_s);

  size_t size() const noexcept { return keys_.size(); }
  const token_key* current(uint64_t now_s) const;
  /// The current key or the one before it, by its id; null for every other.
  const token_key* redeemable(const hash32& key_id, uint64_t now_s) const;
  /// The keys to come, the current one, the previous one.
  token_directory directory(std::string issuer_request_uri, uint64_t now_s) const;

  /// A purchase: under the current key only.
  issuer_answer answer(bytes_view request, uint64_t now_s) const;
  issuer_answer answer_batch(bytes_view request, uint64_t now_s) const;

  /// Change: the token is redeemable and bought for this challenge, the request can be signed.
  result<change_claim> claim_change(bytes_view spent, bytes_view request,
                                    const hash32& challenge_digest, uint64_t now_s) const;
  /// Of a claim that was recorded. The same claim always gets the same answer.
  issuer_answer sign(const change_claim& claim, uint64_t now_s) const;

 private:
  struct kept_key {
    issuer_key key;
    uint64_t not_before_s;
  };
  /// Where the current key is; keys_.size() if none is valid yet.
  size_t current_at(uint64_t now_s) const;
  /// The keys that are live: the current one first, then the previous one.
  std::span<const kept_key> live(uint64_t now_s) const;
  const issuer_key* named(uint8_t short_id, std::span<const kept_key> among) const;

  std::vector<kept_key> keys_;  // the youngest first
};

}  // namespace lethe

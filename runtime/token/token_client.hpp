#pragma once

#include "runtime/token/private_token.hpp"
#include "runtime/token/token_request.hpp"

namespace lethe {

/// A token that its issuer has not signed yet. Nonce and blinding are wiped with it. The key is the
/// same in all calls.
class pending_token {
 public:
  static result<pending_token> make(const token_key& key, const hash32& challenge_digest);
  /// With a nonce and a blinding that are used nowhere else, as published vectors prescribe.
  static result<pending_token> make(const token_key& key, const hash32& challenge_digest,
                                    const hash32& nonce, const blind_choices& choices);

  const token_request& request() const noexcept { return request_; }
  /// The token, verified. A wrong answer leaves this as it was.
  result<private_token> finish(const token_key& key, bytes_view response) const;

 private:
  pending_token(secret_bytes message, blinding blind, uint8_t short_key_id);
  secret_bytes signed_;  // of the token, all before the signature
  blinding blinding_;
  token_request request_;
};

/// What came of a batch. A wrong signature is an issuer's fault that deserves a report.
struct bought_tokens {
  std::vector<private_token> tokens;
  size_t refused = 0;
  size_t wrong = 0;
};

/// Tokens that are asked for together, all under one key and for one challenge.
class token_purchase {
 public:
  /// 1 to limits::token_batch_max.
  static result<token_purchase> make(const token_key& key, const hash32& challenge_digest,
                                     size_t count);

  size_t size() const noexcept { return pending_.size(); }
  std::vector<std::byte> request() const;
  /// An answer that has not one entry for each request is an error, and this stays as it was.
  result<bought_tokens> finish(const token_key& key, bytes_view batch_response) const;

 private:
  explicit token_purchase(std::vector<pending_token> pending) : pending_(std::move(pending)) {}
  std::vector<pending_token> pending_;
};

}  // namespace lethe

#pragma once

#include <optional>

#include "runtime/token/token_key.hpp"

/// What clients send to an issuer and what it answers (RFC 9578, and the draft for batches).
namespace lethe {

struct token_request {
  static constexpr size_t wire_bytes = 259;

  uint8_t short_key_id = 0;
  token_signature blinded{};

  bool operator==(const token_request&) const = default;
  std::array<std::byte, wire_bytes> to_bytes() const;
  static result<token_request> from_bytes(bytes_view bytes);
  /// What is stored with a spent token: only this request is signed as its change.
  hash32 digest() const { return sha256({to_bytes()}); }
};

result<token_signature> read_token_response(bytes_view bytes);

/// 1 to limits::token_batch_max of them.
std::vector<std::byte> write_batch_request(std::span<const token_request> requests);
result<std::vector<token_request>> read_batch_request(bytes_view bytes);

/// An answer for each request, in their order; nothing for one that was refused.
using batch_answer = std::vector<std::optional<token_signature>>;
std::vector<std::byte> write_batch_response(const batch_answer& answer);
result<batch_answer> read_batch_response(bytes_view bytes);

}  // namespace lethe

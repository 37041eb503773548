#pragma once

#include "runtime/token/token_key.hpp"

namespace lethe {

/// A token: whoever shows it first has spent it. `challenge_digest` is what it was bought for.
struct private_token {
  static constexpr size_t wire_bytes = 354;
  static constexpr size_t signed_bytes = 98;  // all before the signature

  hash32 nonce{}, challenge_digest{}, key_id{};
  token_signature signature{};

  bool operator==(const private_token&) const = default;
  std::array<std::byte, wire_bytes> to_bytes() const;
  static result<private_token> from_bytes(bytes_view bytes);
  /// SHA-256 of all of it: what a sealed request is bound to.
  hash32 hash() const { return sha256({to_bytes()}); }
};

/// Whether it was signed by that key, for that challenge.
result<void> verify_token(const private_token& token, const token_key& key,
                          const hash32& challenge_digest);

/// The value of `Authorization`; parameters that are not known are left out.
secret_bytes write_authorization(const private_token& token);
result<private_token> read_authorization(std::string_view authorization);

}  // namespace lethe

#pragma once

#include <optional>
#include <string>

#include "runtime/token/token_key.hpp"

namespace lethe {

/// What a token is bought for (RFC 9577, section 2.1), of type 2.
struct token_challenge {
  std::string issuer;
  std::optional<hash32> redemption_context;
  std::string origin;

  bool operator==(const token_challenge&) const = default;
  /// The names are within limits.
  std::vector<std::byte> to_bytes() const;
  static result<token_challenge> from_bytes(bytes_view bytes);
  /// What a token holds of it.
  hash32 digest() const { return sha256({to_bytes()}); }
};

/// A challenge in an answer's WWW-Authenticate.
struct token_demand {
  token_challenge challenge;
  std::optional<token_spki> key;
  std::optional<uint64_t> max_age_s;

  bool operator==(const token_demand&) const = default;
};

std::string write_demand(const token_demand& demand);
/// Those of type 2, in their order; other schemes and other types are left out. One header may hold
/// several.
result<std::vector<token_demand>> read_demands(std::string_view www_authenticate);

}  // namespace lethe

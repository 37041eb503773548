#pragma once

#include <optional>
#include <string>

#include "runtime/token/token_key.hpp"

namespace lethe {

struct published_key {
  token_spki key;
  std::optional<uint64_t> not_before_s = {};  // Unix time
  /// Accounts that bought under it, at least: said once nobody can any more.
  std::optional<uint64_t> buyers = {};

  bool operator==(const published_key&) const = default;
};

/// What an issuer publishes under token_directory_path: keys of type 2, the preferred one first.
struct token_directory {
  std::string issuer_request_uri;
  std::vector<published_key> keys;

  bool operator==(const token_directory&) const = default;
  /// The first that is already valid; null if none is.
  const published_key* usable(uint64_t now_s) const;
  /// Those that were the preferred one before that.
  std::vector<published_key> over(uint64_t now_s) const;
};

/// The URI is not empty and of printable ASCII.
std::string write_directory(const token_directory& directory);
/// Members that are not known and keys of other types are left out; a member twice, one of another
/// kind and a key twice are refused.
result<token_directory> read_directory(std::string_view json);

}  // namespace lethe

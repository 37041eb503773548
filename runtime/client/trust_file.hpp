#pragma once

#include <filesystem>

#include "runtime/crypto/answer_shape.hpp"
#include "runtime/http/http_client.hpp"
#include "runtime/log/signed_head.hpp"

namespace lethe {

/// A server and the path in front of what it serves: "" or "/some/where".
struct server_at {
  http_origin origin;
  std::string prefix;

  bool operator==(const server_at&) const = default;
  static result<server_at> from_url(std::string_view url);
};

/// What a logged policy may say at most, or must at least.
struct policy_bounds {
  std::string name = "strict";
  uint32_t candidates_max = 1, redraws_max = 2;
  uint32_t nodes_min = 1;
  uint32_t share_max_permille = 1000;
  uint32_t roster_age_max_s = 3600;
  uint32_t buyers_min = 0;  // under a key whose epoch is over, lest its tokens are not shown
  shape_mode shape = shape_mode::size;  // of answers, at least
};

/// Whom a client believes. Everything else is shown to it, and checked against this.
struct trust_file {
  std::filesystem::path file;
  note_trust log;
  std::vector<server_at> relays;
  server_at issuer;
  std::string issuer_name, origin;
  std::vector<std::string> evidence;
  std::filesystem::path authorities;  // empty: the system's
  std::filesystem::path wallet, account;
  policy_bounds policy;

  bool accepts(std::string_view evidence_kind) const;

  /// Every problem in a line of its own: FILE:LINE: KEY: what is wrong.
  static result<trust_file> read(const std::filesystem::path& file);
  static result<trust_file> parse(std::string_view toml, const std::filesystem::path& file);
};

/// What such a file says, for who prints one.
struct trust_text {
  note_key log;
  std::vector<note_key> witnesses;
  uint32_t quorum = 0;
  std::vector<std::string> relays;
  std::string origin, issuer, issuer_name, authorities;
  std::vector<std::string> evidence;
  policy_bounds policy;

  std::string toml() const;
};

}  // namespace lethe

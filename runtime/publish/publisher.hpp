#pragma once

#include <filesystem>

#include "runtime/log/log_file.hpp"
#include "runtime/log/policy.hpp"
#include "runtime/log/roster.hpp"
#include "runtime/token/token_challenge.hpp"
#include "runtime/token/token_directory.hpp"

namespace lethe {

struct publish_setup {
  std::filesystem::path folder;
  std::string origin;      // the log's and the challenge's name
  std::string issuer;      // the name in the challenge
  uint32_t batch = 64;     // tokens of a purchase
  uint32_t minimum_nodes = 1, share_most = 100;
};

struct published_node {
  node_public node;
  uint32_t capacity = 0;
  std::string model;
};

/// What a cluster says of itself in public: policy, keys and rosters, each logged before anyone
/// is given it. Its folder holds the log, the log's key, the cluster's witness, the identity that
/// signs the nodes, and the last rosters.
class publisher {
 public:
  /// Makes what is missing; what is there goes on. Logs the policy if it differs from the last one.
  static result<std::unique_ptr<publisher>> open(const publish_setup& setup, uint64_t now_s);

  /// Logged if they differ from the last ones.
  result<void> issuer_keys(const token_directory& keys, uint64_t now_s);
  result<void> gateway_keys(bytes_view ohttp_keys, uint64_t now_s);
  /// The next roster: its number is one above the last.
  result<void> roster(uint32_t number, std::span<const published_node> nodes, uint64_t not_before_s,
                      uint64_t not_after_s);

  /// The number of the last roster; 0: there was none.
  uint32_t last_roster() const;
  /// A whole roster: the current one, or the one before it. Null: there is no such roster.
  const std::vector<std::byte>* roster_bytes(uint32_t number) const;
  /// "checkpoint", "tile/...".
  result<std::vector<std::byte>> fetch(std::string_view path) const;
  const std::optional<token_directory>& issuer() const { return issuer_; }
  const policy& logged_policy() const { return policy_; }
  const token_challenge& challenge() const { return challenge_; }
};

}  // namespace lethe

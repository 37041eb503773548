#pragma once

#include <map>
#include <string>

#include "runtime/crypto/answer_shape.hpp"
#include "runtime/log/log_entry.hpp"

namespace lethe {

/// What a cluster has promised all of its clients, logged so that nobody is told anything else.
struct log_policy {
  std::string name;                       // "strict", "embedded"
  uint32_t candidates = 1;                // k: nodes that one seal is for
  uint32_t redraws = 2;                   // r: new draws for one body
  std::vector<uint32_t> request_buckets;  // bytes that requests are padded to, rising
  uint32_t chunk_bytes = 0;  // of plaintext, in every chunk of an answer; 0: not shaped
  uint32_t tick_ms = 0;      // between chunks; 0: they leave when there is something to say
  uint32_t nodes_min = 1;
  uint32_t share_max_permille = 1000;  // of capacity, for a node and for an identity
  uint32_t growth_max_permille = 0;    // of capacity, from epoch to epoch
  uint32_t roster_age_max_s = 1200;
  std::vector<std::string> evidence_kinds;  // "none" among them: nothing is attested
  std::map<std::string, uint32_t> classes;  // capacity of a node, by model class
  std::vector<std::byte> token_challenge;
  uint32_t token_batch = 0;  // tokens in every purchase
  uint32_t buyers_min = 0;   // accounts that bought in an epoch, below which a client warns

  bool operator==(const log_policy&) const = default;
  /// JSON with every key once, in this order.
  std::string text() const;
  /// Refuses keys that are missing, unknown or twice there, and values out of bounds.
  static result<log_policy> parse(std::string_view text);
  log_entry to_entry(uint32_t epoch) const;
  static result<log_policy> from_entry(const log_entry& entry);

  answer_shape shape() const { return {chunk_bytes, tick_ms}; }
  /// Whether every node shows what it is; if not, one machine can be many nodes.
  bool attested() const;
};

}  // namespace lethe

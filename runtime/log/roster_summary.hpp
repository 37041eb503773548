#pragma once

#include "runtime/crypto/sha256.hpp"
#include "runtime/log/log_entry.hpp"

namespace lethe {

/// What is logged of an epoch's roster.
struct roster_summary {
  uint64_t not_before = 0;  // Unix seconds
  hash32 root{};
  uint32_t nodes = 0;
  uint64_t capacity = 0;  // of all of them

  bool operator==(const roster_summary&) const = default;
  /// not-before(u64) ‖ root(32) ‖ nodes(u32) ‖ capacity(u64); the entry has the epoch.
  log_entry to_entry(uint32_t epoch) const;
  static result<roster_summary> from_entry(const log_entry& entry);
};

}  // namespace lethe

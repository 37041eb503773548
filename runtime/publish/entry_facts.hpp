#pragma once

#include <variant>

#include "runtime/log/log_entry.hpp"

namespace lethe {

struct entry_fact {
  std::string name;
  std::variant<std::string, uint64_t> value;
};

/// What an entry says, for human eyes: a roster's root and size, a policy's name and bounds, the
/// digests of keys. Refuses a payload that its kind can't have.
result<std::vector<entry_fact>> facts_of(const log_entry& entry);

/// "root 5f…, nodes 3".
std::string text_of(const std::vector<entry_fact>& facts);

/// "2026-01-31 12:00:00 UTC".
std::string utc_text(uint64_t unix_s);

}  // namespace lethe

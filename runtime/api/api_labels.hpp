#pragma once

#include <algorithm>

#include "runtime/json/json_slice.hpp"

namespace lethe {

/// Parameters that would tell one user's requests from another's, or let them be treated apart.
inline constexpr const char* api_labels[] = {"user",         "priority",        "cache_salt",
                                             "service_tier", "metadata",        "safety_identifier",
                                             "request_id",   "prompt_cache_key"};

inline bool is_label(json_slice key) {
  return std::ranges::any_of(api_labels, [&](const char* label) { return key.says(label); });
}

}  // namespace lethe

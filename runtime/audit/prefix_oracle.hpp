#pragma once

#include "runtime/audit/finding.hpp"
#include "runtime/serve/served_model.hpp"

namespace lethe::audit {

struct prefix_settings {
  std::shared_ptr<const served_model> model;
  uint32_t pairs = 800;
  uint32_t page_tokens = 16, prefix_pages = 8;
  uint64_t seed = 1;
  bool judge_times = true;  // false: computed tokens alone, where a machine's times say nothing
};

/// Whether a guessed beginning of somebody's prompt is served faster than one that nobody sent
/// (A1), on a real engine: tokens that were computed for it, and time to its first word. Held: by
/// neither they are told apart (AUC 0.5 +- 0.03, for times beside what so few pairs leave open).
/// Control: an engine of the lab that keeps pages of prompts for others.
finding measure_prefix_oracle(const prefix_settings& s);

}  // namespace lethe::audit

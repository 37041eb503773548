#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/model/problems.hpp"

namespace lethe {

/// How the model's publisher samples from it (generation_config.json, GGUF metadata).
struct generation_defaults {
  std::vector<uint32_t> eos_ids;
  std::optional<uint32_t> bos_id, pad_id;
  std::optional<float> temperature;  // 0 where the file says do_sample: false
  std::optional<uint32_t> top_k;
  std::optional<float> top_p, min_p, typical_p, repetition_penalty;
};

/// Of generation_config.json; `where` names the file.
generation_defaults read_generation_config(std::string_view json, std::string_view where,
                                           problem_list& problems);

/// Notes and drops what is out of range.
void check_defaults(generation_defaults& d, std::string_view where, problem_list& problems);

}  // namespace lethe

#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "kernels/matrix.hpp"
#include "parallel/shape.hpp"
#include "runtime/base/result.hpp"
#include "runtime/model/generation_defaults.hpp"

namespace lethe {

struct type_share {
  std::string type;                                 // also one that we do not read
  uint64_t tensors = 0, parameters = 0, bytes = 0;  // as they lie in the file; 0 bytes: unknown
};

/// The types of the tensors that do one thing, whatever their layer.
struct part_types {
  std::string part;
  std::vector<type_share> types;  // most tensors first
};

/// Memory for `context` tokens of one sequence, by how keys and values are kept.
struct kv_need {
  const char* type;  // f32, bf16, int8
  uint64_t bytes_per_token, bytes;
};

/// What a model is and needs. Where `problems` is not empty the other members show what could be
/// read.
struct model_facts {
  bool gguf = false;
  model_shape shape;
  generation_defaults defaults;
  uint64_t parameters = 0;        // a tied head counts once
  std::vector<type_share> types;  // most bytes first
  std::vector<part_types> parts;  // in a model's order
  uint64_t file_bytes = 0;        // of the tensors
  uint64_t weight_bytes = 0;      // in memory, repacked; 0: some tensor cannot be read
  uint32_t context = 0;           // that `kv` is for
  std::array<kv_need, 3> kv{};
  std::string rope, window;  // in words; empty where the file does not say
  std::vector<std::string> problems;
};

/// `context` 0: the model's own. An error only where there is nothing to show.
result<model_facts> inspect_model(const std::filesystem::path& path, uint32_t context = 0);

}  // namespace lethe

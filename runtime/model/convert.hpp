#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "kernels/matrix.hpp"
#include "runtime/base/result.hpp"

namespace lethe {

struct convert_options {
  dtype type = dtype::q8_0;  // of matrices; vectors stay f32
  uint32_t threads = 1;
  /// Called from the calling thread with bytes written and in all.
  std::function<void(uint64_t, uint64_t)> progress;
};

struct convert_report {
  uint64_t bytes = 0;
  /// Matrices whose columns are no whole blocks of the type; they became f16.
  std::vector<std::string> kept;
};

/// Writes a Hugging Face folder, weights and tokenizer, as one GGUF file (version 3). It appears
/// under its name only when whole; an error leaves nothing behind. Holds one slice of one tensor at
/// a time.
result<convert_report> convert_to_gguf(const std::filesystem::path& folder,
                                       const std::filesystem::path& to,
                                       const convert_options& options);

}  // namespace lethe

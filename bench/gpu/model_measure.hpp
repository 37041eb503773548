#pragma once

#include <functional>
#include <string>

#include "bench/gpu/device_probe.hpp"
#include "bench/gpu/model_steps.hpp"
#include "bench/gpu/random_weights.hpp"

namespace lethe::bench {

/// What a model is measured on, and beside what.
struct measuring {
  accelerator& on;
  const cuda_row& row;
  std::string model, device, commit;  // names, for the lines
  matrix_peaks peaks;
  std::function<double()> copy_bytes_per_s;  // measured anew
  /// A line of JSON, and the same for who watches.
  std::function<void(const std::string& line, const std::string& told)> say;
  std::function<void(uint64_t, uint64_t)> loading;  // as upload_options::progress
  uint32_t threads = 1;                             // that make weights
};

/// Bytes that the device needs for it, its graphs and context included.
uint64_t device_bytes(const random_weights& weights, const cuda_row& row, const run_sizes& sizes);

/// Prompts, then decodes by all numbers of streams. Every stream has to be answered the same in any
/// company.
result<void> measure(const measuring& m, const random_weights& weights, const run_sizes& sizes);

}  // namespace lethe::bench

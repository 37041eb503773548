#pragma once

#include <cstring>

#include "kernels/panels.hpp"
#include "parallel/weight_source.hpp"

namespace lethe::testing {

/// Weights that are panels in memory already.
class memory_weights : public weight_source {
 public:
  explicit memory_weights(const model_weights& weights) : weights_(weights) {}

  const model_weights& weights() const override { return weights_; }
  void read(const matrix& from, const panel_part& part, std::byte* to) const override {
    const size_t block = block_elements(from.type), bytes = panel_block_bytes(from.type);
    const size_t pitch = panel_bytes(from.type, part.columns());
    for (uint32_t p = part.panel_begin; p < part.panel_end; ++p, to += pitch) {
      std::memset(to, 0, pitch);
      std::memcpy(
          to,
          from.panels + p * panel_bytes(from.type, from.cols) + part.column_begin / block * bytes,
          part.columns() / block * bytes);
    }
  }
  void read(const float* from, size_t count, std::byte* to) const override {
    std::memcpy(to, from, count * sizeof(float));
  }
  void release(const matrix&) const override {}

 private:
  const model_weights& weights_;
};

}  // namespace lethe::testing

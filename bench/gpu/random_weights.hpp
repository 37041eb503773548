#pragma once

#include <memory>

#include "parallel/region.hpp"
#include "parallel/weight_source.hpp"
#include "runtime/model/load_memory.hpp"

namespace lethe::bench {

/// Weights of a shape that no memory holds: each word is made of where it lies, so whoever reads
/// it, in whatever pieces, reads the same. Sums of products are about as large as what went in.
class random_weights final : public weight_source {
 public:
  /// bf16 or q8_0. Rows of all matrices fill panels.
  static result<std::unique_ptr<random_weights>> make(const model_shape& shape, dtype type);

  const model_weights& weights() const override { return weights_; }
  void read(const matrix& from, const panel_part& part, std::byte* to) const override;
  void read(const float* from, size_t count, std::byte* to) const override;
  void release(const matrix&) const override {}

  dtype type() const { return type_; }
  size_t bytes() const { return bytes_; }

 private:
  random_weights(const model_shape& shape, dtype type, size_t bytes, reserved_addresses addresses);

  const dtype type_;
  const size_t bytes_;
  const reserved_addresses addresses_;
  const model_weights weights_;
};

/// The same weights in memory, for a shard on cores.
struct held_weights {
  region memory;
  model_weights weights;

  static result<held_weights> of(const random_weights& from);
};

}  // namespace lethe::bench

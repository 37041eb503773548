#pragma once

#include <memory>

#include "parallel/accelerator.hpp"
#include "parallel/cut.hpp"
#include "parallel/weights.hpp"
#include "runtime/base/result.hpp"

namespace lethe {

/// Which rows and segments of each weight a rank multiplies, and so has.
class weight_parts {
 public:
  weight_parts(const model_shape& shape, const shard_part& part)
      : part_(part), head_dim_(shape.head_dim) {}

  product_part q() const { return rows(times_head_dim(part_.heads)); }
  product_part kv() const { return rows(times_head_dim(part_.kv_heads)); }
  product_part ffn() const { return rows(part_.ffn); }
  product_part vocab() const { return rows(part_.vocab); }
  /// Of o and down, whose K is spread over the tensor ranks: some segments, or else some rows.
  product_part spread(const matrix& m) const;
  bool along_k(const matrix& m) const { return cuts_along_k(m.type, m.cols, part_.tensor_size); }

 private:
  static product_part rows(range r) { return {r.begin, r.end, 0, segments}; }
  range times_head_dim(range heads) const {
    return {heads.begin * head_dim_, heads.end * head_dim_};
  }

  shard_part part_;
  uint32_t head_dim_;
};

/// How a part of a weight lies on a device.
constexpr device_matrix held(const matrix& m, const product_part& part) {
  return {m, part.row_begin / panel_rows, part.segment_begin, part.segment_end};
}

/// Columns of the input that a part of a weight is multiplied with.
constexpr uint32_t columns_of(const matrix& m, const product_part& part) {
  return segment_begin(m.type, m.cols, part.segment_end) -
         segment_begin(m.type, m.cols, part.segment_begin);
}

/// A rank's part of a model's weights in a device's memory. Panels that two matrices share are
/// there once.
class device_weights {
 public:
  /// Copies by pieces through pinned memory, which is given back.
  static result<std::unique_ptr<device_weights>> upload(accelerator& on, const model_weights& from,
                                                        const shard_part& part);

  /// `from`, its pointers the device's: a matrix's to its part (weight_parts, `held`). What the
  /// rank has nothing of is not to be read.
  const model_weights& get() const { return weights_; }
  const weight_parts& parts() const { return parts_; }
  size_t bytes() const { return memory_.size(); }

 private:
  device_weights(accelerator& on, const model_weights& from, const shard_part& part, size_t bytes)
      : weights_(from), parts_(from.shape, part), memory_(on, memory_kind::device, bytes) {}

  model_weights weights_;
  const weight_parts parts_;
  device_memory memory_;
};

}  // namespace lethe

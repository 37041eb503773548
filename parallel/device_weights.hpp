#pragma once

#include <memory>

#include "parallel/device_upload.hpp"
#include "parallel/weight_parts.hpp"

namespace lethe {

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
  /// Through pinned memory, which is given back. `on` outlives them; the source need not.
  static result<std::unique_ptr<device_weights>> load(accelerator& on, const weight_source& from,
                                                      const shard_part& part,
                                                      const upload_options& how = {});

  /// What a part takes. Only where weights lie is looked at: they need no memory.
  static size_t bytes_of(const model_weights& all, const shard_part& part);

  /// The source's, their pointers the device's: a matrix's to its part (weight_parts, `held`). What
  /// the rank has nothing of is not to be read.
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

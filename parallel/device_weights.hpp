#pragma once

#include <memory>

#include "parallel/accelerator.hpp"
#include "parallel/weights.hpp"
#include "runtime/base/result.hpp"

namespace lethe {

/// A model's weights in a device's memory, panels as they are. Panels that two matrices share are
/// there once.
class device_weights {
 public:
  /// Copies by pieces through pinned memory, which is given back.
  static result<std::unique_ptr<device_weights>> upload(accelerator& on, const model_weights& from);

  /// `from`, its pointers the device's.
  const model_weights& get() const { return weights_; }
  size_t bytes() const { return memory_.size(); }

 private:
  device_weights(accelerator& on, const model_weights& from, size_t bytes)
      : weights_(from), memory_(on, memory_kind::device, bytes) {}

  model_weights weights_;
  device_memory memory_;
};

}  // namespace lethe

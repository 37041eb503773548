#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "parallel/weights.hpp"
#include "runtime/base/result.hpp"
#include "runtime/model/checkpoint.hpp"

namespace lethe {

/// One weight in the memory of a loaded model: a matrix as panels, or a vector of floats.
struct placed_tensor {
  std::string name;  // as in the checkpoint
  bool is_vector = false;
  dtype type = dtype::f32;  // in memory
  uint32_t rows = 1, cols = 0;
  uint64_t offset = 0, bytes = 0;
};

/// Where every weight lies. A pure function of the checkpoint's tensor list and `quantize`, so
/// that a process that maps another's memory computes the same.
struct load_layout {
  std::vector<placed_tensor> tensors;  // in the checkpoint's order
  uint64_t bytes = 0;
  std::vector<std::string> unconverted;  // matrices that kept their type under `quantize`
};

/// Fails where `quantize` is not a block type, the tensors are quantized already, or the sum of
/// their bytes can't be mapped.
result<load_layout> plan_layout(std::span<const raw_tensor> tensors, std::optional<dtype> quantize);

/// The model's weights in memory at `base` that is laid out so and outlives them.
model_weights weights_at(const model_shape& shape, const load_layout& layout,
                         const std::byte* base);

}  // namespace lethe

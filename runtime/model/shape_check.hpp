#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "parallel/shape.hpp"
#include "runtime/model/checkpoint.hpp"
#include "runtime/model/problems.hpp"

namespace lethe {

/// The numbers by themselves: zero, beyond limits.hpp, or contradicting each other.
void check_shape(const model_shape& shape, std::string_view where, problem_list& problems);

struct expected_tensor {
  std::string name;
  uint32_t rows, cols;
};
/// The weights that a model of this shape has, by checkpoint.hpp's names. The shape must have
/// passed check_shape.
std::vector<expected_tensor> expected_tensors(const model_shape& shape);

/// The tensors against the shape: missing, left over, of other rows or columns, or vectors in a
/// type without floats.
void check_tensors(const model_shape& shape, std::span<const raw_tensor> tensors,
                   std::string_view where, problem_list& problems);

}  // namespace lethe

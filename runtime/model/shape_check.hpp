#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "parallel/shape.hpp"
#include "runtime/model/checkpoint.hpp"
#include "runtime/model/problems.hpp"
#include "runtime/model/tensor_faults.hpp"

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

/// Where tensors come from, and how they are called there.
struct tensor_place {
  std::string_view where;
  std::string (*in_file)(std::string_view own);
  const std::unordered_set<std::string_view>& unread;  // there, but of a type we cannot read
};

/// The tensors against the shape: missing, left over, of other rows or columns, or vectors in a
/// type without floats.
void check_tensors(const model_shape& shape, std::span<const raw_tensor> tensors,
                   const tensor_place& place, tensor_faults& faults);

}  // namespace lethe

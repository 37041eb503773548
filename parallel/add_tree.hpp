#pragma once

#include <cstddef>
#include <span>

namespace lethe {

/// to[i] = sum over rows of row[i], added in the fixed tree ((0+1)+(2+3))+..., for i in
/// [begin, end). What rows held there is used up; `to` may be one of them.
void add_tree(std::span<float* const> rows, float* to, size_t begin, size_t end);

}  // namespace lethe

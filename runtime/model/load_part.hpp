#pragma once

#include "parallel/weight_source.hpp"
#include "runtime/model/checkpoint.hpp"
#include "runtime/model/load_layout.hpp"

namespace lethe {

/// Part of a matrix from the file's rows: repacked, and before that converted where the layout
/// wants another type. As weight_source::read says.
void load_panels(const raw_tensor& from, const placed_tensor& as, uint32_t head_dim,
                 const panel_part& part, std::byte* to);

/// So many floats of a vector, from `first` on.
void load_floats(const raw_tensor& from, uint32_t head_dim, uint32_t first, uint32_t count,
                 std::byte* to);

}  // namespace lethe

#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/limits.hpp"

/// Bounds on one chat template and one rendering, beside those of runtime/base.
namespace lethe::limits {

inline constexpr size_t template_values_bytes_max = size_t{512}
                                                    << 20;  // all values and texts of one rendering
inline constexpr uint32_t template_syntax_depth_max = 100;  // nested blocks and brackets
inline constexpr uint32_t template_depth_max = 800;  // nested evaluation, see the test of its stack
inline constexpr uint32_t template_json_depth_max = 128;
inline constexpr int64_t template_range_max = 100'000;   // as Jinja's own sandbox
inline constexpr int64_t template_width_max = 10'000;    // padding and indentation
inline constexpr uint64_t template_bytes_per_step = 64;  // what moving text costs

}  // namespace lethe::limits

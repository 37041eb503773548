#pragma once

#include <cstddef>

#include "tests/cuda/target.hpp"

namespace lethe::emulated {

/// Memory that ends where a page that nobody may touch begins; one more lies before it.
void* take(size_t bytes);
/// Aborts where something was written before its first byte.
void give(void* p, size_t bytes);
void copy(void* to, const void* from, size_t bytes);

inline target target_on(const cuda_row& row, device_stream stream) {
  return {&row, stream, take, give, copy, copy};
}

}  // namespace lethe::emulated

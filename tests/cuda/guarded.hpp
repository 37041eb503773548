#pragma once

#include <cstddef>

namespace lethe::emulated {

/// Memory that ends where a page that nobody may touch begins; one more lies before it.
void* take(size_t bytes);
/// Aborts where something was written before its first byte.
void give(void* p, size_t bytes);
void copy(void* to, const void* from, size_t bytes);

}  // namespace lethe::emulated

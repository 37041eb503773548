#pragma once

#include "runtime/base/bytes.hpp"

namespace lethe {

template <class T>
void store_be(T value, std::byte* at) noexcept {
  for (size_t i = 0; i < sizeof value; ++i)
    at[i] = std::byte(uint8_t(value >> (8 * (sizeof value - 1 - i))));
}

template <class T>
T load_be(const std::byte* at) noexcept {
  T value = 0;
  for (size_t i = 0; i < sizeof value; ++i) value = T(uint64_t(value) << 8 | uint8_t(at[i]));
  return value;
}

}  // namespace lethe

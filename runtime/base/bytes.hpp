#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace lethe {

static_assert(std::endian::native == std::endian::little, "model files are read in place");

using bytes_view = std::span<const std::byte>;

template <class T>
T load_le(const std::byte* at) noexcept {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

inline std::string_view as_text(bytes_view b) {
  return {reinterpret_cast<const char*>(b.data()), b.size()};
}

inline bytes_view as_bytes(std::string_view t) {
  return {reinterpret_cast<const std::byte*>(t.data()), t.size()};
}

}  // namespace lethe

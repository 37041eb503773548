#pragma once

#include <vector>

#include "runtime/base/bytes.hpp"
#include "runtime/base/check.hpp"

/// The variable-length integer of QUIC (RFC 9000, section 16).
namespace lethe {

inline constexpr uint64_t varint_max = (uint64_t{1} << 62) - 1;

/// The length that the first byte tells.
constexpr size_t varint_bytes_told(std::byte first) { return size_t{1} << (uint8_t(first) >> 6); }

/// The shortest length that holds it.
constexpr size_t varint_bytes(uint64_t value) {
  return value < (1u << 6) ? 1 : value < (1u << 14) ? 2 : value < (1u << 30) ? 4 : 8;
}

/// Of exactly as many bytes as the first one tells. Longer than needed is valid.
constexpr uint64_t varint_value(bytes_view bytes) {
  uint64_t value = uint8_t(bytes[0]) & 0x3f;
  for (std::byte b : bytes.subspan(1)) value = value << 8 | uint8_t(b);
  return value;
}

inline void append_varint(uint64_t value, std::vector<std::byte>& out) {
  check(value <= varint_max);
  const size_t bytes = varint_bytes(value);
  const uint64_t told = uint64_t(std::countr_zero(bytes)) << (8 * bytes - 2);
  for (size_t i = bytes; i > 0; --i)
    out.push_back(std::byte(uint8_t((value | told) >> (8 * (i - 1)))));
}

}  // namespace lethe

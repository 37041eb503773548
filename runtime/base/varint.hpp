#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime/base/bytes.hpp"
#include "runtime/base/check.hpp"

/// QUIC's variable-length integers (RFC 9000 section 16): the two high bits of the first byte say
/// whether 1, 2, 4 or 8 bytes hold the number. A longer form than needed is valid.
namespace lethe {

inline constexpr uint64_t varint_max = (uint64_t{1} << 62) - 1;

constexpr size_t varint_bytes(uint64_t value) noexcept {
  return value < 1u << 6 ? 1 : value < 1u << 14 ? 2 : value < 1u << 30 ? 4 : 8;
}

/// The length that the first byte tells.
constexpr size_t varint_bytes_told(std::byte first) noexcept {
  return size_t{1} << (uint8_t(first) >> 6);
}

/// Of exactly as many bytes as the first one tells.
constexpr uint64_t varint_value(bytes_view bytes) noexcept {
  uint64_t value = uint8_t(bytes[0]) & 0x3f;
  for (std::byte b : bytes.subspan(1)) value = value << 8 | uint8_t(b);
  return value;
}

/// Takes a number off the front of `in`; nothing, and `in` as it was, if `in` ends before it does.
constexpr std::optional<uint64_t> take_varint(std::string_view& in) noexcept {
  if (in.empty()) return {};
  const auto first = uint8_t(in[0]);
  const size_t bytes = size_t{1} << (first >> 6);
  if (in.size() < bytes) return {};
  uint64_t value = first & 0x3f;
  for (size_t i = 1; i < bytes; ++i) value = value << 8 | uint8_t(in[i]);
  in.remove_prefix(bytes);
  return value;
}

/// Appends the shortest form. `value` is at most varint_max.
template <class Bytes>
void append_varint(Bytes& out, uint64_t value) {
  using byte = typename Bytes::value_type;
  check(value <= varint_max);
  const size_t bytes = varint_bytes(value);
  const uint64_t form = bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3;
  value |= form << (8 * bytes - 2);
  for (size_t i = bytes; i-- > 0;) out.push_back(byte(uint8_t(value >> (8 * i))));
}

}  // namespace lethe

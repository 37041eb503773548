#pragma once

#include <string>

#include "runtime/base/bytes.hpp"

namespace lethe {

/// Two lower-case digits a byte.
inline std::string to_hex(bytes_view bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string out;
  for (std::byte b : bytes) out.append({digits[uint8_t(b) >> 4], digits[uint8_t(b) & 15]});
  return out;
}

}  // namespace lethe

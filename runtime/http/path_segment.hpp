#pragma once

#include <charconv>
#include <string>
#include <string_view>

namespace lethe {

/// A path's segment as it is meant (RFC 3986, section 2.1); where it is none, the %s stay.
inline std::string decoded_segment(std::string_view from) {
  std::string all;
  for (size_t i = 0; i < from.size(); ++i) {
    uint8_t byte = 0;
    bool coded = from[i] == '%' && i + 2 < from.size() &&
                 std::from_chars(&from[i] + 1, &from[i] + 3, byte, 16).ptr == &from[i] + 3;
    all += coded ? char(byte) : from[i];
    i += coded ? 2 : 0;
  }
  return all;
}

}  // namespace lethe

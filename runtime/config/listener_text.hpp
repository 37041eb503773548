#pragma once

#include <string_view>

namespace lethe {

/// ADDRESS:PORT with a numeric address, as a file says it.
struct listener_text {
  bool valid = false, loopback = false;

  static listener_text parse(std::string_view text);
};

inline constexpr const char* listener_form = "is no ADDRESS:PORT, as 127.0.0.1:8080 or [::1]:8080";

}  // namespace lethe

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lethe {

/// ADDRESS:PORT with a numeric address, as a file says it.
struct listener_text {
  bool valid = false, loopback = false;
  bool everywhere = false;  // every address of its family
  bool six = false;         // IPv6, which never takes IPv4's port
  std::string address;      // in its one form
  uint16_t port = 0;        // 0: any that is free

  static listener_text parse(std::string_view text);
  /// Two sockets of one host, of which only one could listen.
  bool meets(const listener_text& other) const;
};

inline constexpr const char* listener_form = "is no ADDRESS:PORT, as 127.0.0.1:8080 or [::1]:8080";

}  // namespace lethe

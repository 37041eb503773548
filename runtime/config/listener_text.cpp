#include "runtime/config/listener_text.hpp"

#include <arpa/inet.h>

#include <charconv>

namespace lethe {

listener_text listener_text::parse(std::string_view text) {
  size_t colon = text.rfind(':');
  if (colon == text.npos) return {};
  std::string address(text.substr(0, colon));
  uint16_t port = 0;
  auto [rest, wrong] = std::from_chars(text.data() + colon + 1, text.data() + text.size(), port);
  if (wrong != std::errc() || rest != text.data() + text.size()) return {};
  in_addr four{};
  if (inet_pton(AF_INET, address.c_str(), &four) == 1)
    return {.valid = true,
            .loopback = (ntohl(four.s_addr) >> 24) == 127,
            .everywhere = four.s_addr == INADDR_ANY,
            .address = std::move(address),
            .port = port};
  in6_addr six{};
  if (address.size() > 2 && address.front() == '[' && address.back() == ']' &&
      inet_pton(AF_INET6, address.substr(1, address.size() - 2).c_str(), &six) == 1) {
    char shown[INET6_ADDRSTRLEN] = {};
    inet_ntop(AF_INET6, &six, shown, sizeof shown);
    return {.valid = true,
            .loopback = bool(IN6_IS_ADDR_LOOPBACK(&six)),
            .everywhere = bool(IN6_IS_ADDR_UNSPECIFIED(&six)),
            .six = true,
            .address = shown,
            .port = port};
  }
  return {};
}

bool listener_text::meets(const listener_text& other) const {
  return port != 0 && port == other.port && six == other.six &&
         (everywhere || other.everywhere || address == other.address);
}

}  // namespace lethe

#include "runtime/config/origin_text.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>

#include "runtime/config/listener_text.hpp"

namespace lethe {

namespace {

constexpr std::string_view plain = "http://", over_tls = "https://";

constexpr size_t host_bytes_max = 253;

bool is_host(std::string_view host) {
  if (host == "[::1]") return true;
  auto may_stand = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-';
  };
  return !host.empty() && host.size() <= host_bytes_max && std::ranges::all_of(host, may_stand);
}

bool is_loopback(std::string_view host) {
  return host == "localhost" || host == "127.0.0.1" || host == "[::1]";
}

/// ":8080", as it stands when it is not the scheme's own.
bool is_port(std::string_view text, uint16_t usual) {
  uint16_t port = 0;
  if (text.size() < 2 || text[1] == '0') return false;
  auto [rest, wrong] = std::from_chars(text.data() + 1, text.data() + text.size(), port);
  return wrong == std::errc() && rest == text.data() + text.size() && port != usual;
}

}  // namespace

result<void> check_origin(std::string_view text) {
  const bool tls = text.starts_with(over_tls);
  if (text == "*") return fail("allows every page; name the origins of those that you mean");
  auto rest = text;
  rest.remove_prefix(tls ? over_tls.size() : text.starts_with(plain) ? plain.size() : 0);
  const size_t colon = rest.find(':', rest.starts_with('[') ? rest.find(']') : 0);
  const auto host = rest.substr(0, colon);
  const bool port = colon == rest.npos || is_port(rest.substr(colon), tls ? 443 : 80);
  if (rest.size() == text.size() || !is_host(host) || !port)
    return fail(
        "is no origin as browsers say it: https://HOST or https://HOST:PORT in small "
        "letters, no path, no usual port");
  if (!tls && !is_loopback(host))
    return fail("is plain http, where browsers have no Web Crypto; only pages of localhost may be");
  return {};
}

bool is_open_way(std::string_view url) {
  if (!url.starts_with(plain)) return false;
  auto host = url.substr(plain.size());
  host = host.substr(0, host.find_first_of("/?#"));
  host = host.substr(0, host.find(':', host.starts_with('[') ? host.find(']') : 0));
  return host != "localhost" && !listener_text::parse(std::string(host) + ":0").loopback;
}

}  // namespace lethe

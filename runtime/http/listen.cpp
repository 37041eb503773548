#include "runtime/http/listen.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>

namespace lethe {
namespace {

constexpr int backlog = 1024;
constexpr int flags = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;

struct tcp_address {
  sockaddr_storage bytes{};
  socklen_t size = 0;
  bool six = false;
};

std::optional<tcp_address> read_tcp(const std::string& text) {
  auto colon = text.rfind(':');
  if (colon == text.npos) return {};
  auto host = text.substr(0, colon), port_text = text.substr(colon + 1);
  uint16_t port = 0;
  auto end = port_text.data() + port_text.size();
  auto [stop, wrong] = std::from_chars(port_text.data(), end, port);
  if (wrong != std::errc{} || stop != end) return {};
  tcp_address a;
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    auto& to = reinterpret_cast<sockaddr_in6&>(a.bytes);
    to.sin6_family = AF_INET6;
    to.sin6_port = htons(port);
    a.size = sizeof to;
    a.six = true;
    if (inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &to.sin6_addr) != 1) return {};
    return a;
  }
  auto& to = reinterpret_cast<sockaddr_in&>(a.bytes);
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  a.size = sizeof to;
  if (inet_pton(AF_INET, host.c_str(), &to.sin_addr) != 1) return {};
  return a;
}

std::string with_real_port(const std::string& address, int fd) {
  sockaddr_storage bytes{};
  socklen_t size = sizeof bytes;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&bytes), &size) != 0) return address;
  auto port = bytes.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(bytes).sin6_port
                                          : reinterpret_cast<sockaddr_in&>(bytes).sin_port;
  return address.substr(0, address.rfind(':') + 1) + std::to_string(ntohs(port));
}

error cannot_listen(const std::string& address) {
  int why = errno;
  if (why == EADDRINUSE)
    return fail("http: {} is in use; stop the program that listens there or choose another address",
                address);
  if (why == EADDRNOTAVAIL)
    return fail("http: {} is no address of this host; choose one of its own or 127.0.0.1", address);
  if (why == EACCES)
    return fail("http: no permission to listen on {}; choose a port above 1023 or another folder",
                address);
  return fail("http: cannot listen on {}: {}", address, std::strerror(why));
}

/// A socket's path that nobody listens on any more is left over from a process that died.
bool left_over(const sockaddr_un& at) {
  struct stat s {};
  if (lstat(at.sun_path, &s) != 0 || !S_ISSOCK(s.st_mode)) return false;
  int fd = socket(AF_UNIX, flags, 0);
  bool refused = fd >= 0 && connect(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0 &&
                 errno == ECONNREFUSED;
  if (fd >= 0) close(fd);
  return refused;
}

}  // namespace

listen_socket::~listen_socket() {
  if (fd_ < 0) return;
  close(fd_);
  if (!path_.empty()) unlink(path_.c_str());
}

result<listen_socket> listen_socket::open(const std::string& address) {
  if (address.starts_with("unix:")) return open_unix(address, address.substr(5));
  return open_tcp(address);
}

result<listen_socket> listen_socket::open_unix(const std::string& address,
                                               const std::string& path) {
  sockaddr_un to{};
  if (path.empty() || path.size() >= sizeof to.sun_path)
    return fail("http: {}: the path of a Unix socket has 1 to {} bytes", address,
                sizeof to.sun_path - 1);
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path, path.data(), path.size());
  if (left_over(to)) unlink(path.c_str());
  listen_socket s(socket(AF_UNIX, flags, 0));
  if (s.fd_ < 0 || bind(s.fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0)
    return cannot_listen(address);
  s.path_ = path;
  if (listen(s.fd_, backlog) != 0) return cannot_listen(address);
  s.bound_ = address;
  return s;
}

result<listen_socket> listen_socket::open_tcp(const std::string& address) {
  auto to = read_tcp(address);
  if (!to)
    return fail(
        "http: {} is no address to listen on; write one like 127.0.0.1:8080, [::1]:8080 or "
        "unix:/path",
        address);
  listen_socket s(socket(to->six ? AF_INET6 : AF_INET, flags, 0));
  if (s.fd_ < 0) return cannot_listen(address);
  int on = 1;
  setsockopt(s.fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  // Accepted sockets inherit it: a streamed piece never waits for the one before.
  setsockopt(s.fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (to->six) setsockopt(s.fd_, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  if (bind(s.fd_, reinterpret_cast<sockaddr*>(&to->bytes), to->size) != 0 ||
      listen(s.fd_, backlog) != 0)
    return cannot_listen(address);
  s.bound_ = with_real_port(address, s.fd_);
  return s;
}

}  // namespace lethe

#include "parallel/link_address.hpp"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "runtime/base/check.hpp"

namespace lethe {

result<link_address> link_address::parse(const std::string& numeric, uint16_t port) {
  link_address a;
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  v4.sin_family = AF_INET, v6.sin6_family = AF_INET6;
  v4.sin_port = v6.sin6_port = htons(port);
  if (inet_pton(AF_INET, numeric.c_str(), &v4.sin_addr) == 1)
    std::memcpy(a.raw.data(), &v4, sizeof v4);
  else if (inet_pton(AF_INET6, numeric.c_str(), &v6.sin6_addr) == 1)
    std::memcpy(a.raw.data(), &v6, sizeof v6);
  else
    return fail("communicator: {} is no IP address; write one like 10.0.0.7", numeric);
  return a;
}

result<link_address> link_address::read(bytes_view b) {
  link_address a;
  if (b.size() != bytes) return fail("communicator: an address of {} bytes", b.size());
  std::memcpy(a.raw.data(), b.data(), bytes);
  auto family = a.get()->sa_family;
  if (family != AF_INET && family != AF_INET6)
    return fail("communicator: an address of family {}", family);
  return a;
}

uint16_t link_address::port() const {
  uint16_t port;  // at the same place in both families
  std::memcpy(&port, raw.data() + offsetof(sockaddr_in, sin_port), sizeof port);
  return ntohs(port);
}

bool link_address::is_host_of(const sockaddr& other) const {
  if (other.sa_family != get()->sa_family) return false;
  const bool v6 = other.sa_family == AF_INET6;
  const size_t at = v6 ? offsetof(sockaddr_in6, sin6_addr) : offsetof(sockaddr_in, sin_addr);
  const size_t size = v6 ? sizeof(in6_addr) : sizeof(in_addr);
  return std::memcmp(reinterpret_cast<const char*>(&other) + at, raw.data() + at, size) == 0;
}

std::string link_address::text() const {
  char name[INET6_ADDRSTRLEN] = "";
  bool v6 = get()->sa_family == AF_INET6;
  size_t at = v6 ? offsetof(sockaddr_in6, sin6_addr) : offsetof(sockaddr_in, sin_addr);
  inet_ntop(v6 ? AF_INET6 : AF_INET, raw.data() + at, name, sizeof name);
  return fmt::format(fmt::runtime(v6 ? "[{}]:{}" : "{}:{}"), name, port());
}

result<owned_fd> listen_at(link_address& at) {
  owned_fd fd(socket(at.get()->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (bind(fd.get(), at.get(), link_address::bytes) != 0 || listen(fd.get(), SOMAXCONN) != 0)
    return fail("communicator: cannot listen at {}: {}; name an address of this host", at.text(),
                std::strerror(errno));
  socklen_t size = link_address::bytes;
  check(getsockname(fd.get(), reinterpret_cast<sockaddr*>(at.raw.data()), &size) == 0);
  return fd;
}

void keep_alive(int fd, std::chrono::milliseconds timeout) {
  int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
  int seconds = std::max(1, int(timeout.count() / 3000)), probes = 3;
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof seconds);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &seconds, sizeof seconds);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

}  // namespace lethe

#include "parallel/device_claim.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

namespace lethe {
namespace {

constexpr std::chrono::milliseconds look_again{20};

/// An address without a file, which is free again when its owner has ended.
struct address {
  sockaddr_un at{.sun_family = AF_UNIX};
  socklen_t size;

  explicit address(const std::string& id) {
    std::string name = "lethe device " + id;
    name.resize(std::min(name.size(), sizeof at.sun_path - 1));
    std::memcpy(at.sun_path + 1, name.data(), name.size());
    size = socklen_t(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&at); }
};

owned_fd socket_here() { return owned_fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)); }

/// Nobody: 0.
pid_t owner_of(const address& a) {
  owned_fd fd = socket_here();
  ucred who{};
  socklen_t size = sizeof who;
  if (::connect(fd.get(), a.get(), a.size) != 0) return 0;
  return ::getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 ? who.pid : 0;
}

}  // namespace

result<device_claim> device_claim::take(const std::string& id, std::chrono::milliseconds patience) {
  const address a(id);
  const auto until = std::chrono::steady_clock::now() + patience;
  for (;;) {
    owned_fd fd = socket_here();
    if (::bind(fd.get(), a.get(), a.size) == 0 && ::listen(fd.get(), 1) == 0)
      return device_claim(std::move(fd));
    if (errno != EADDRINUSE) return fail("device: it cannot be claimed: {}", std::strerror(errno));
    if (std::chrono::steady_clock::now() >= until)
      return fail("device: process {} has it; end that one, or place this rank elsewhere",
                  owner_of(a));
    std::this_thread::sleep_for(look_again);
  }
}

}  // namespace lethe

#include "actors/cluster/node_keys.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/crypto/certificate.hpp"

namespace lethe {

namespace {

constexpr uint32_t days_in_memory = 3650;  // as long as the process, at most

/// A file that only this process, and children that it names, can open; children inherit it.
result<std::filesystem::path> in_memory(const std::string& text) {
  int first = ::memfd_create("key", 0);
  // Above the descriptors that a child is given by number.
  int fd = first < 0 ? first : ::fcntl(first, F_DUPFD, 64);
  if (first >= 0) ::close(first);
  if (fd < 0 || ::write(fd, text.data(), text.size()) != ssize_t(text.size()))
    return fail("tls: a key cannot be kept in memory");
  return std::filesystem::path(fmt::format("/proc/self/fd/{}", fd));
}

result<node_tls> keys_in_memory(const std::string& host) {
  auto authority = make_authority("lethe in one machine", days_in_memory);
  if (!authority) return authority.why();
  auto own = make_host(*authority, host, "127.0.0.1", days_in_memory);
  if (!own) return own.why();
  auto certificate = in_memory(pem_of(own->certificate.get()));
  auto key = in_memory(pem_of(own->key.get()));
  auto root = in_memory(pem_of(authority->certificate.get()));
  if (!certificate || !key || !root) return fail("tls: a key cannot be kept in memory");
  return node_tls{*certificate, *key, *root, host};
}

}  // namespace

result<node_tls> keys_for(const checked_config& config, const std::string& host) {
  std::string folder = config.config.get().getTls().getFolder();
  if (!folder.empty()) {
    auto path = std::filesystem::absolute(config.config.resolve(folder)).lexically_normal();
    return node_tls{path / (host + ".crt"), path / (host + ".key"), path / "ca.crt", host};
  }
  if (config.layout.hosts.size() > 1)
    return fail(
        "[tls] folder is not set; hosts talk to each other over mutual TLS or not at all. "
        "Set it, and run `lethe keys init`");
  return keys_in_memory(host);
}

}  // namespace lethe

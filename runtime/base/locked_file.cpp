#include "runtime/base/locked_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace lethe {

result<locked_file> locked_file::open(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return fail("{}: cannot open: {}", path.string(), std::strerror(errno));
  locked_file file(fd);
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return file;
  if (errno == EWOULDBLOCK) return fail("{}{}", path.string(), taken);
  return fail("{}: cannot lock: {}", path.string(), std::strerror(errno));
}

locked_file::locked_file(locked_file&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}

locked_file& locked_file::operator=(locked_file&& o) noexcept {
  std::swap(fd_, o.fd_);
  return *this;
}

locked_file::~locked_file() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace lethe

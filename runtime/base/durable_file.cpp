#include "runtime/base/durable_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace lethe {
namespace {

error cannot(const char* what, const std::filesystem::path& path) {
  return fail("{}: cannot {}: {}", path.string(), what, std::strerror(errno));
}

bool write_all(int fd, bytes_view bytes) {
  while (!bytes.empty()) {
    ssize_t wrote = ::write(fd, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    bytes = bytes.subspan(size_t(wrote));
  }
  return true;
}

result<void> write_new(const std::filesystem::path& path, bytes_view bytes, mode_t mode) {
  ::unlink(path.c_str());  // of a process that died with our number
  int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (fd < 0) return cannot("create", path);
  result<void> done;
  if (!write_all(fd, bytes) || ::fsync(fd) != 0) done = cannot("write", path);
  if (::close(fd) != 0 && done) done = cannot("write", path);
  return done;
}

}  // namespace

result<void> sync_folder(const std::filesystem::path& folder) {
  const auto at = folder.empty() ? std::filesystem::path(".") : folder;
  int fd = ::open(at.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return cannot("open the folder", at);
  result<void> done;
  if (::fsync(fd) != 0) done = cannot("sync the folder", at);
  ::close(fd);
  return done;
}

result<void> write_durable(const std::filesystem::path& path, bytes_view bytes, mode_t mode) {
  auto partial = path;
  partial += fmt::format(".partial-{}", ::getpid());
  auto done = write_new(partial, bytes, mode);
  if (done && ::rename(partial.c_str(), path.c_str()) != 0)
    done = cannot("give the file its name", path);
  if (!done) {
    ::unlink(partial.c_str());
    return done;
  }
  return sync_folder(path.parent_path());
}

}  // namespace lethe

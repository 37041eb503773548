#include "runtime/base/durable_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace lethe {

namespace {

namespace fs = std::filesystem;

error cannot(const fs::path& path, const char* what) {
  return fail("{}: cannot {}: {}", path.string(), what, std::strerror(errno));
}

bool write_all(int fd, bytes_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(fd, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    bytes = bytes.subspan(size_t(wrote));
  }
  return true;
}

}  // namespace

result<void> write_durable(const fs::path& path, bytes_view bytes, mode_t mode) {
  auto partial = path;
  partial += ".partial";
  if (::unlink(partial.c_str()) != 0 && errno != ENOENT) return cannot(partial, "remove");
  const int fd = ::open(partial.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (fd < 0) return cannot(partial, "create");
  const bool good = write_all(fd, bytes) && ::fsync(fd) == 0;
  const int reason = errno;
  ::close(fd);
  if (!good || ::rename(partial.c_str(), path.c_str()) != 0) {
    const error why = good ? cannot(path, "give the file its name")
                           : fail("{}: cannot write: {}", path.string(), std::strerror(reason));
    ::unlink(partial.c_str());
    return why;
  }
  return sync_folder(path.parent_path());
}

result<void> make_folder(const fs::path& folder, mode_t mode) {
  if (folder.empty()) return {};
  const fs::path whole = fs::absolute(folder);
  const fs::path at = whole.has_filename() ? whole : whole.parent_path(), above = at.parent_path();
  if (above == at) return {};
  if (auto ok = make_folder(above); !ok) return ok;
  const bool made = ::mkdir(at.c_str(), mode) == 0;
  std::error_code ignored;
  if (!made && !(errno == EEXIST && fs::is_directory(at, ignored))) return cannot(at, "make");
  auto lasts = sync_folder(above);
  // One that is there, in a folder that we may not read, was not ours to make.
  return made ? lasts : result<void>();
}

result<void> sync_folder(const fs::path& folder) {
  const fs::path at = folder.empty() ? fs::path(".") : folder;
  const int fd = ::open(at.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return cannot(at, "open");
  const bool good = ::fsync(fd) == 0;
  const int reason = errno;
  ::close(fd);
  if (!good) return fail("{}: cannot write: {}", at.string(), std::strerror(reason));
  return {};
}

}  // namespace lethe

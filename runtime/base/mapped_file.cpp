#include "runtime/base/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace lethe {

result<mapped_file> mapped_file::open(const std::filesystem::path& path) {
  // A pipe must not keep us waiting before it is refused.
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return fail("{}: cannot open: {}", path.string(), std::strerror(errno));
  struct stat info {};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    return fail("{}: not a regular file", path.string());
  }
  mapped_file file;
  if (info.st_size > 0) {
    void* at = mmap(nullptr, size_t(info.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
    int reason = errno;
    ::close(fd);
    if (at == MAP_FAILED) return fail("{}: cannot map: {}", path.string(), std::strerror(reason));
    file.bytes_ = {static_cast<const std::byte*>(at), size_t(info.st_size)};
  } else {
    ::close(fd);
  }
  return file;
}

mapped_file::mapped_file(mapped_file&& o) noexcept : bytes_(std::exchange(o.bytes_, {})) {}

mapped_file& mapped_file::operator=(mapped_file&& o) noexcept {
  std::swap(bytes_, o.bytes_);
  return *this;
}

mapped_file::~mapped_file() {
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void mapped_file::release(bytes_view part) const noexcept {
  constexpr uintptr_t page = 4096;
  auto begin = (reinterpret_cast<uintptr_t>(part.data()) + page - 1) & ~(page - 1);
  auto end = reinterpret_cast<uintptr_t>(part.data() + part.size()) & ~(page - 1);
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

result<std::string> read_text(const std::filesystem::path& path, size_t bytes_max) {
  auto file = mapped_file::open(path);
  if (!file) return file.why();
  if (file->bytes().size() > bytes_max)
    return fail("{}: {} bytes; at most {} are read", path.string(), file->bytes().size(),
                bytes_max);
  return std::string(as_text(file->bytes()));
}

}  // namespace lethe

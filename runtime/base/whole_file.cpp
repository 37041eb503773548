#include "runtime/base/whole_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "runtime/base/check.hpp"

namespace lethe {

error whole_file::cannot(const char* what) const {
  return fail("{}: cannot {}: {}", path_.string(), what, std::strerror(errno));
}

result<whole_file> whole_file::create(const std::filesystem::path& path, unsigned mode) {
  whole_file made;
  made.path_ = path;
  std::error_code ignored;
  auto there = std::filesystem::status(path, ignored);
  bool special = std::filesystem::exists(there) && !std::filesystem::is_regular_file(there);
  int how = O_WRONLY | O_CLOEXEC | (special ? 0 : O_CREAT | O_EXCL);
  auto at = path;
  if (!special) at += fmt::format(".partial-{}", ::getpid());
  int fd = ::open(at.c_str(), how, mode);
  if (fd < 0) return made.cannot("create");
  if (!special) made.partial_ = at;
  made.file_.reset(::fdopen(fd, "wb"));
  check(made.file_ != nullptr);
  return made;
}

whole_file::~whole_file() {
  if (!file_) return;
  file_.reset();
  if (replaces()) ::unlink(partial_.c_str());
}

result<void> whole_file::write(bytes_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size())
    return cannot("write");
  written_ += bytes.size();
  return {};
}

result<void> whole_file::pad(uint64_t alignment) {
  constexpr std::array<std::byte, 64> zeros{};
  check(alignment <= zeros.size());
  return write(bytes_view(zeros).first((alignment - written_ % alignment) % alignment));
}

result<void> whole_file::finish() {
  if (std::fflush(file_.get()) != 0) return cannot("write");
  if (replaces()) {
    if (::fsync(::fileno(file_.get())) != 0) return cannot("write");
    if (::rename(partial_.c_str(), path_.c_str()) != 0) return cannot("give the file its name");
  }
  file_.reset();
  return {};
}

result<void> write_whole_file(const std::filesystem::path& path, bytes_view bytes, unsigned mode) {
  auto file = whole_file::create(path, mode);
  if (!file) return file.why();
  if (auto ok = file->write(bytes); !ok) return ok;
  return file->finish();
}

}  // namespace lethe

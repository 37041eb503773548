#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "runtime/model/gguf_write.hpp"

namespace lethe {

error whole_file::cannot(const char* what) const {
  return fail("{}: cannot {}: {}", path_.string(), what, std::strerror(errno));
}

result<whole_file> whole_file::create(const std::filesystem::path& path) {
  whole_file made;
  made.path_ = path;
  made.partial_ = path;
  made.partial_ += fmt::format(".partial-{}", ::getpid());
  int fd = ::open(made.partial_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) {
    auto why = made.cannot("create");
    made.partial_.clear();
    return why;
  }
  made.file_.reset(::fdopen(fd, "wb"));
  check(made.file_ != nullptr);
  return made;
}

whole_file::~whole_file() {
  if (!file_) return;
  file_.reset();
  ::unlink(partial_.c_str());
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
  if (std::fflush(file_.get()) != 0 || ::fsync(::fileno(file_.get())) != 0) return cannot("write");
  if (::rename(partial_.c_str(), path_.c_str()) != 0) return cannot("give the file its name");
  file_.reset();
  return {};
}

}  // namespace lethe

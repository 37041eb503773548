#include "runtime/store/key_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "runtime/base/check.hpp"
#include "runtime/base/durable_file.hpp"
#include "runtime/base/owned_fd.hpp"
#include "runtime/store/store_limits.hpp"

namespace lethe {
namespace {

result<void> check_length(const std::filesystem::path& path, uint64_t size, key_length length) {
  if (size >= length.least && size <= length.most) return {};
  return fail("{}: {} bytes; a key here has {} to {}", path.string(), size, length.least,
              length.most);
}

result<void> check_owner(const std::filesystem::path& path, const struct stat& info) {
  if (!S_ISREG(info.st_mode)) return fail("{}: not a regular file", path.string());
  if (info.st_mode & 077)
    return fail("{}: others may read or write it; make a new key, or chmod 600 it", path.string());
  if (info.st_uid != ::geteuid()) return fail("{}: belongs to another user", path.string());
  return {};
}

}  // namespace

result<secret_bytes> read_key(const std::filesystem::path& path, key_length length) {
  check(length.most <= limits::key_file_bytes_max);
  // A pipe must not keep us waiting.
  const owned_fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file.get() < 0 && errno == ELOOP) return fail("{}: not a regular file", path.string());
  struct stat info {};
  if (file.get() < 0 || ::fstat(file.get(), &info) != 0)
    return fail("{}: cannot open: {}", path.string(), std::strerror(errno));
  if (auto ok = check_owner(path, info); !ok) return ok.why();
  if (auto ok = check_length(path, uint64_t(info.st_size), length); !ok) return ok.why();
  secret_bytes key(size_t(info.st_size));
  if (::read(file.get(), key.bytes().data(), key.size()) != ssize_t(key.size()))
    return fail("{}: cannot read: {}", path.string(), std::strerror(errno));
  return key;
}

result<secret_bytes> keep_key(const std::filesystem::path& path, key_length length,
                              const std::function<result<secret_bytes>()>& make) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) == 0 || errno != ENOENT) return read_key(path, length);
  auto made = make();
  if (!made) return made;
  if (auto ok = check_length(path, made->size(), length); !ok) return ok.why();
  if (auto ok = write_durable(path, made->view(), 0600); !ok) return ok.why();
  return made;
}

}  // namespace lethe

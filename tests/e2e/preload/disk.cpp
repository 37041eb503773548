// Preloaded into `lethe` by a test: each sync of a file or folder under LETHE_TEST_DISKS/NAME is
// recorded in NAME.synced beside it, from which the test makes what a loss of power leaves.
#include <dlfcn.h>
#include <sys/file.h>

#include <cstdlib>

#include "tests/e2e/preload/disk_record.hpp"

namespace {

using namespace lethe;

const char* const early = std::getenv("LETHE_TEST_DISKS");  // before the program closes it

std::string own_link(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

std::string path_of(int fd) {
  char path[4096];
  const ssize_t n = ::readlink(own_link(fd).c_str(), path, sizeof path);
  return n < 0 ? std::string() : std::string(path, size_t(n));
}

/// The folder of records of the disk that a path is on; empty: none of them.
std::string synced_of(const std::string& path) {
  const char* disks = early ? early : std::getenv("LETHE_TEST_DISKS");  // a test's own comes later
  if (!disks || !path.starts_with(std::string(disks) + "/")) return {};
  const size_t end = path.find('/', std::string(disks).size() + 1);
  const std::string synced = path.substr(0, end) + ".synced";
  return ::access(synced.c_str(), W_OK) == 0 ? synced : std::string();
}

/// One at a time, over all processes: what is read first must not be recorded last.
class turn {
 public:
  explicit turn(const std::string& synced)
      : fd_(::open((synced + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    ::flock(fd_, LOCK_EX);
  }
  ~turn() { ::close(fd_); }
  turn(const turn&) = delete;

 private:
  int fd_;
};

bool is_a_lie(const std::string& path, const std::string& synced) {
  const int fd = ::open((synced + "/lies").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const std::string about = disk::bytes_of(fd);
  ::close(fd);
  return path.find(about) != path.npos;
}

/// One that was opened to write alone is not SQLite's, and may be opened once more.
std::string content_of(int fd) {
  if ((::fcntl(fd, F_GETFL) & O_ACCMODE) != O_WRONLY) return disk::bytes_of(fd);
  const int again = ::open(own_link(fd).c_str(), O_RDONLY | O_CLOEXEC);
  const std::string bytes = disk::bytes_of(again);
  ::close(again);
  return bytes;
}

/// Whether it is on a disk of the test, and recorded.
bool record(int fd) {
  const std::string path = path_of(fd), synced = synced_of(path);
  if (synced.empty()) return false;
  struct stat info {};
  if (::fstat(fd, &info) != 0) return false;
  turn mine(synced);
  if (is_a_lie(path, synced)) return true;
  if (S_ISDIR(info.st_mode)) {
    disk::record_names(path, info.st_ino, synced);
  } else {
    disk::pin(path, synced);
    disk::put(disk::record_of(synced, info.st_ino), content_of(fd));
  }
  return true;
}

int sync_as(const char* name, int fd) {
  const int reason = errno;
  if (record(fd)) return errno = reason, 0;
  return reinterpret_cast<int (*)(int)>(::dlsym(RTLD_NEXT, name))(fd);
}

}  // namespace

extern "C" int fsync(int fd) { return sync_as("fsync", fd); }
extern "C" int fdatasync(int fd) { return sync_as("fdatasync", fd); }

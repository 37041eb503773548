#include "runtime/base/temporary_folder.hpp"

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

namespace lethe {

namespace fs = std::filesystem;

namespace {

/// Empty if it can't be made.
fs::path made_in(const fs::path& where, const std::string& name) {
  std::string path = (where / (name + "-XXXXXX")).string();
  return ::mkdtemp(path.data()) ? fs::path(path) : fs::path();
}

}  // namespace

result<temporary_folder> temporary_folder::make(const std::string& name) {
  std::error_code wrong;
  const auto where = fs::temp_directory_path(wrong);
  if (wrong) return fail("TMPDIR is no folder: {}", wrong.message());
  if (auto path = made_in(where, name); !path.empty()) return temporary_folder(path);
  return fail("{}: no folder can be made there ({}); set TMPDIR", where.string(),
              std::strerror(errno));
}

result<temporary_folder> temporary_folder::make_in_memory(const std::string& name) {
  if (auto path = made_in("/dev/shm", name); !path.empty()) return temporary_folder(path);
  return make(name);
}

temporary_folder::temporary_folder(temporary_folder&& other) noexcept
    : path_(std::exchange(other.path_, {})) {}

temporary_folder& temporary_folder::operator=(temporary_folder other) noexcept {
  std::swap(path_, other.path_);
  return *this;
}

temporary_folder::~temporary_folder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

result<std::string> temporary_folder::write(const std::string& name,
                                            const std::string& content) const {
  const std::string path = (path_ / name).string();
  std::ofstream file(path, std::ios::binary);
  file << content;
  if (!file.flush()) return fail("{}: {}", path, std::strerror(errno));
  return path;
}

}  // namespace lethe

#pragma once

#include <unistd.h>

#include <filesystem>

#include "runtime/base/result.hpp"

namespace lethe::audit {

/// A folder of its own, gone with the object; in memory where the system has such a place.
class scratch_folder {
 public:
  static result<scratch_folder> make() {
    for (std::filesystem::path where : {std::filesystem::path("/dev/shm"), temporary()}) {
      std::string name = (where / "lethe-audit-XXXXXX").string();
      if (::mkdtemp(name.data())) return scratch_folder(name);
    }
    return fail("audit: no folder for its files; make {} writable", temporary().string());
  }
  scratch_folder(scratch_folder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  scratch_folder& operator=(scratch_folder other) noexcept {
    return std::swap(path_, other.path_), *this;
  }
  ~scratch_folder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  explicit scratch_folder(std::filesystem::path path) : path_(std::move(path)) {}
  static std::filesystem::path temporary() {
    std::error_code wrong;
    auto path = std::filesystem::temp_directory_path(wrong);
    return wrong ? "/tmp" : path;
  }
  std::filesystem::path path_;
};

}  // namespace lethe::audit

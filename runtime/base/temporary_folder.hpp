#pragma once

#include <filesystem>
#include <string>

#include "runtime/base/result.hpp"

namespace lethe {

/// A folder of its own, gone with the object.
class temporary_folder {
 public:
  /// Below TMPDIR; `name` is for who finds it after a crash.
  static result<temporary_folder> make(const std::string& name);
  /// In memory where the system has such a place.
  static result<temporary_folder> make_in_memory(const std::string& name);
  temporary_folder(temporary_folder&& other) noexcept;
  temporary_folder& operator=(temporary_folder other) noexcept;
  ~temporary_folder();

  const std::filesystem::path& path() const { return path_; }
  /// Where it lies.
  result<std::string> write(const std::string& name, const std::string& content) const;

 private:
  explicit temporary_folder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;  // empty: moved away
};

}  // namespace lethe

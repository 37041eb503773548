#pragma once

#include <filesystem>
#include <string>

#include "runtime/base/bytes.hpp"
#include "runtime/base/result.hpp"

namespace lethe {

/// A whole file, mapped read-only. An empty file maps to no bytes.
class mapped_file {
 public:
  static result<mapped_file> open(const std::filesystem::path& path);
  mapped_file(mapped_file&& o) noexcept;
  mapped_file& operator=(mapped_file&& o) noexcept;
  ~mapped_file();

  bytes_view bytes() const noexcept { return bytes_; }
  /// Tells the kernel that these pages will not be read again soon.
  void release(bytes_view part) const noexcept;

 private:
  mapped_file() = default;
  bytes_view bytes_;
};

/// A whole small file as text; refuses more than `bytes_max`.
result<std::string> read_text(const std::filesystem::path& path, size_t bytes_max);

}  // namespace lethe

#pragma once

#include <cstdio>
#include <filesystem>
#include <memory>

#include "runtime/base/bytes.hpp"
#include "runtime/base/result.hpp"

namespace lethe {

/// A file that appears under its name only when it is whole: written under another name in the
/// same folder, which an unfinished one leaves with the object. What is no regular file, like
/// /dev/stdout or a pipe, is written as it is.
class whole_file {
 public:
  static result<whole_file> create(const std::filesystem::path& path, unsigned mode = 0666);
  whole_file(whole_file&&) noexcept = default;
  whole_file& operator=(whole_file&&) = delete;
  ~whole_file();

  result<void> write(bytes_view bytes);
  /// Zeros up to the next multiple.
  result<void> pad(uint64_t alignment);
  /// Flushes to the disk and gives the file its name.
  result<void> finish();
  uint64_t written() const noexcept { return written_; }

 private:
  struct closer {
    void operator()(std::FILE* f) const { std::fclose(f); }
  };
  whole_file() = default;
  error cannot(const char* what) const;
  bool replaces() const { return !partial_.empty(); }

  std::filesystem::path path_, partial_;
  std::unique_ptr<std::FILE, closer> file_;
  uint64_t written_ = 0;
};

/// All of a small file at once.
result<void> write_whole_file(const std::filesystem::path& path, bytes_view bytes,
                              unsigned mode = 0666);

}  // namespace lethe

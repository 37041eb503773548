#pragma once

#include <filesystem>
#include <string_view>

#include "runtime/base/result.hpp"

namespace lethe {

/// An open file that only this process has: made if it is not there, free again when it dies or the
/// process does.
class locked_file {
 public:
  static result<locked_file> open(const std::filesystem::path& path);
  /// How the error ends if another has it.
  static constexpr std::string_view taken = ": another process has it";
  locked_file(locked_file&& o) noexcept;
  locked_file& operator=(locked_file&& o) noexcept;
  ~locked_file();

  int fd() const noexcept { return fd_; }

 private:
  explicit locked_file(int fd) : fd_(fd) {}
  int fd_ = -1;
};

}  // namespace lethe

#pragma once

#include <filesystem>

#include "runtime/base/mapped_file.hpp"
#include "runtime/log/log_entry.hpp"
#include "runtime/log/signed_head.hpp"

namespace lethe {

/// A log's folder as its writer left it, also while that goes on: read without its lock. What it
/// says is worth nothing until it was verified.
class log_on_disk {
 public:
  static result<log_on_disk> read(const std::filesystem::path& folder);

  const signed_head& head() const noexcept { return head_; }
  const std::optional<signed_head>& published() const noexcept { return published_; }
  /// Those that the head counts, as far as they are there.
  const std::vector<bytes_view>& entries() const noexcept { return entries_; }

 private:
  explicit log_on_disk(mapped_file file) : file_(std::move(file)) {}
  mapped_file file_;
  std::vector<bytes_view> entries_;  // views of the file
  signed_head head_;
  std::optional<signed_head> published_;
};

}  // namespace lethe

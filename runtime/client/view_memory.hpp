#pragma once

#include <filesystem>

#include "runtime/log/log_reader.hpp"
#include "runtime/log/roster_policy.hpp"

namespace lethe {

/// What a client knows of a cluster for good.
struct view_memory {
  std::optional<roster_before> before;
  std::optional<log_memory> log;

  /// ver(u8) = 1 ‖ 0 or 1 (u8) ‖ epoch(u32) ‖ capacity(u64), of the last roster ‖ the log's memory.
  std::vector<std::byte> to_bytes() const;
  static result<view_memory> from_bytes(bytes_view bytes);
  /// Empty where there is no file.
  static result<view_memory> read(const std::filesystem::path& file);
};

}  // namespace lethe

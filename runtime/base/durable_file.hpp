#pragma once

#include <sys/types.h>

#include <filesystem>

#include "runtime/base/bytes.hpp"
#include "runtime/base/result.hpp"

namespace lethe {

/// Replaces a small file as a whole: after a crash at any point it is the old one or the new one,
/// and the new one once this has returned. Written as PATH.partial beside it, so a file has one
/// writer at a time; what a crash leaves there is replaced by the next write.
result<void> write_durable(const std::filesystem::path& path, bytes_view bytes, mode_t mode = 0644);

/// Makes a folder, and those above it, if it is missing; and makes their names last, also should
/// an earlier process have died before it did.
result<void> make_folder(const std::filesystem::path& folder, mode_t mode = 0755);

/// Makes names that appeared in a folder, or left it, last.
result<void> sync_folder(const std::filesystem::path& folder);

}  // namespace lethe

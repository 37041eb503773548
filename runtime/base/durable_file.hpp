#pragma once

#include <sys/types.h>

#include <filesystem>

#include "runtime/base/bytes.hpp"
#include "runtime/base/result.hpp"

namespace lethe {

/// A whole small file that outlives a power cut once this returns: written under another name,
/// synced, renamed, and its folder synced. Before that, `path` is as it was.
result<void> write_durable(const std::filesystem::path& path, bytes_view bytes, mode_t mode);

/// The names in a folder outlive a power cut once this returns.
result<void> sync_folder(const std::filesystem::path& folder);

}  // namespace lethe

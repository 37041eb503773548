#pragma once

#include <filesystem>
#include <functional>

#include "runtime/base/result.hpp"
#include "runtime/base/secret_bytes.hpp"

namespace lethe {

/// How long a key file may be; at most limits::key_file_bytes_max.
struct key_length {
  size_t least, most;
};

/// A secret that its owner alone may read: a regular file, no link, mode 0600 or less.
result<secret_bytes> read_key(const std::filesystem::path& path, key_length length);

/// What `path` holds. If it is not there, `make` is called and what it gives is on the disk, mode
/// 0600, before it is returned. Two processes don't do this to one path at once: who calls has
/// locked the folder (a store in it is open).
result<secret_bytes> keep_key(const std::filesystem::path& path, key_length length,
                              const std::function<result<secret_bytes>()>& make);

}  // namespace lethe

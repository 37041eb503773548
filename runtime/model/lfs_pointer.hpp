#pragma once

#include "runtime/base/bytes.hpp"

namespace lethe {

/// What `git clone` leaves in place of a large file where git-lfs is not installed.
inline bool is_lfs_pointer(bytes_view file) {
  return as_text(file).starts_with("version https://git-lfs");
}

inline constexpr const char* lfs_advice =
    "is only a git-lfs pointer to the file; run `git lfs pull` in its folder";

}  // namespace lethe

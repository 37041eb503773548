#pragma once

#include <source_location>

namespace lethe {

/// Ends the process with file and line: an invariant of ours is broken. Prints no data.
[[noreturn]] void broken(std::source_location where) noexcept;

/// On in release, too.
constexpr void check(bool holds,
                     std::source_location where = std::source_location::current()) noexcept {
  if (!holds) [[unlikely]]
    broken(where);
}

}  // namespace lethe

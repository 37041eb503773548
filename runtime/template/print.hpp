#pragma once

#include <span>
#include <string_view>

namespace lethe::jinja {

/// A float as Python prints it: the shortest digits that read back the same.
std::string_view real_text(double d, std::span<char, 32> room);

}  // namespace lethe::jinja

#pragma once

#include <array>
#include <initializer_list>

#include "runtime/base/bytes.hpp"

namespace lethe {

using hash32 = std::array<std::byte, 32>;

/// SHA-256 of the parts, one after the other.
hash32 sha256(std::initializer_list<bytes_view> parts);

}  // namespace lethe

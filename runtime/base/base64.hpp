#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/base/bytes.hpp"

/// Base64 with padding (RFC 4648 section 4), in its one canonical form.
namespace lethe {

constexpr size_t base64_chars(size_t bytes) noexcept { return (bytes + 2) / 3 * 4; }

std::string to_base64(bytes_view bytes);
/// Nothing for any other text than to_base64 makes: stray characters, missing padding, spare bits.
std::optional<std::vector<std::byte>> from_base64(std::string_view text);

}  // namespace lethe

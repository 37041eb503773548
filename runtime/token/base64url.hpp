#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/base/bytes.hpp"

/// Base64 with the alphabet for URLs and with padding (RFC 4648, section 5).
namespace lethe {

constexpr size_t base64url_chars(size_t bytes) noexcept { return (bytes + 2) / 3 * 4; }

/// `to` has base64url_chars(bytes.size()).
void write_base64url(bytes_view bytes, std::span<char> to);
std::string to_base64url(bytes_view bytes);

/// Only the one text that the bytes are written as: with padding, and no bits that say nothing.
std::optional<std::vector<std::byte>> read_base64url(std::string_view text);

}  // namespace lethe

#pragma once

#include <memory_resource>
#include <string>
#include <string_view>

namespace lethe::unicode {

enum class form : uint8_t { nfc, nfd, nfkc, nfkd };

/// Appends the normal form (UAX #15) of valid UTF-8.
void normalize(std::string_view text, form f, std::pmr::string& out);

bool is_white_space(char32_t c) noexcept;      // White_Space
bool is_mark(char32_t c) noexcept;             // M
bool is_nonspacing_mark(char32_t c) noexcept;  // Mn
bool is_number(char32_t c) noexcept;           // N
bool is_punctuation(char32_t c) noexcept;      // P
bool is_other(char32_t c) noexcept;            // Cc, Cf, Co, Cs
bool is_word(char32_t c) noexcept;             // what stands beside a single_word token
/// Simple lower case; U+0130 becomes "i" and a combining dot.
void append_lower(char32_t c, std::pmr::string& out);

}  // namespace lethe::unicode

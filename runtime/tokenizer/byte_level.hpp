#pragma once

#include <cstdint>
#include <memory_resource>
#include <optional>
#include <string>
#include <string_view>

/// GPT-2's way to write any byte as a printable character, in which byte-level vocabularies
/// are spelled: "Ġ" is a space, "Ċ" a line feed.
namespace lethe::byte_level {

char32_t character(uint8_t byte) noexcept;
std::optional<uint8_t> byte(char32_t character) noexcept;

/// To where there is room for twice as many; returns where they end.
char* write_characters(std::string_view bytes, char* to) noexcept;
/// False, and nothing appended, when a character stands for no byte.
bool append_bytes(std::string_view characters, std::pmr::string& out);

}  // namespace lethe::byte_level

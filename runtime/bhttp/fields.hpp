#pragma once

#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.hpp"

/// Field sections of Binary HTTP (RFC 9292 section 3.6). Stricter than it in two ways: fields about
/// a connection are refused, where it only tells encoders to drop them, and so are pseudo-fields.
namespace lethe {

/// Views of bytes that someone else holds.
struct bhttp_field {
  std::string_view name, value;
};

using bhttp_fields = std::pmr::vector<bhttp_field>;

/// RFC 9110 section 5.6.2; `lower` refuses capitals.
bool is_http_token(std::string_view text, bool lower);

/// A section that is whole: its lines without what frames them, and its bytes with it.
struct bhttp_section {
  std::string_view lines;
  size_t bytes = 0;
};

/// Finds the end of the section that `in` begins with; nothing if it is not all there yet. `seen`
/// is where a next call, with more bytes, goes on; 0 at first. `where` begins the texts of errors.
result<std::optional<bhttp_section>> find_section(std::string_view in, bool known_length,
                                                  size_t& seen, std::string_view where);

/// Appends the fields of a section's lines, as views of them.
result<void> read_fields(std::string_view lines, std::string_view where, bhttp_fields& fields);

/// Whether readers will take these fields.
result<void> check_fields(std::span<const bhttp_field> fields, std::string_view where);
size_t lines_bytes(std::span<const bhttp_field> fields);
void append_lines(std::span<const bhttp_field> fields, std::pmr::string& out);

}  // namespace lethe

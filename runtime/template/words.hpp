#pragma once

#include <string_view>

#include "runtime/template/rendering.hpp"

/// What filters and methods of texts both need.
namespace lethe::jinja {

std::string_view to_upper(rendering& r, std::string_view text);
std::string_view to_lower(rendering& r, std::string_view text);
std::string_view capitalized(rendering& r, std::string_view text);

/// Without `marks` (default: white space) at the ends asked for. A part of `text`, not a copy.
std::string_view stripped(rendering& r, std::string_view text, const value& marks, bool left,
                          bool right);
/// Every `from` replaced, at most `count` of them (negative: all).
value replaced(rendering& r, std::string_view text, std::string_view from, std::string_view to,
               int64_t count);
/// The byte offset of `part` at or behind `from`, or npos; counts the work.
size_t find_part(rendering& r, std::string_view text, std::string_view part, size_t from);
/// The last one's offset, or npos.
size_t find_last_part(rendering& r, std::string_view text, std::string_view part);
/// Lines as Python's splitlines sees them.
value lines_of(rendering& r, std::string_view text, bool keep_ends);
/// `text` in the middle, or at a side, of `width` points.
enum class side : uint8_t { left, middle, right };
value padded(rendering& r, std::string_view text, int64_t width, std::string_view fill, side where);

}  // namespace lethe::jinja

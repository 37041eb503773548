#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "runtime/base/varint.hpp"
#include "runtime/bhttp/request.hpp"
#include "runtime/bhttp/response_reader.hpp"
#include "runtime/bhttp/response_writer.hpp"

namespace lethe {

using pairs = std::vector<std::pair<std::string, std::string>>;

inline std::string from_hex(std::string_view hex) {
  std::string out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    out.push_back(char(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  return out;
}

inline pairs copied(std::span<const bhttp_field> fields) {
  pairs out;
  for (const auto& f : fields) out.emplace_back(f.name, f.value);
  return out;
}

/// A field line, and a text behind its length.
inline std::string sized(std::string_view text) {
  std::string out;
  append_varint(out, text.size());
  return out.append(text);
}
inline std::string line(std::string_view name, std::string_view value) {
  return sized(name) + sized(value);
}

/// What a reader makes of a response that comes in `pieces`.
struct read_response {
  bool ok = false;
  std::string why;
  uint32_t status = 0;
  pairs fields, trailers;
  std::string content;
  bool operator==(const read_response&) const = default;
};

inline read_response read_pieces(const std::vector<std::string>& pieces,
                                 uint64_t content_bytes_max = limits::bhttp_content_bytes_max) {
  bhttp_response_reader reader(std::pmr::get_default_resource(), content_bytes_max);
  std::pmr::string content;
  for (const auto& piece : pieces) {
    // The piece is gone when the next one comes; nothing may point into it.
    auto lent = std::make_unique<std::string>(piece);
    if (auto ok = reader.feed(*lent, content); !ok) return {.why = ok.why().text};
  }
  if (auto ok = reader.finish(); !ok) return {.why = ok.why().text};
  return {true,
          {},
          reader.status(),
          copied(reader.fields()),
          copied(reader.trailers()),
          std::string(content)};
}

/// The same however it is cut: at each one place, and into single bytes.
inline read_response read_all_cuts(const std::string& whole) {
  const auto expected = read_pieces({whole});
  std::vector<std::string> bytes;
  for (size_t cut = 0; cut <= whole.size(); ++cut) {
    EXPECT_EQ(read_pieces({whole.substr(0, cut), whole.substr(cut)}), expected) << cut;
    if (cut < whole.size()) bytes.push_back(whole.substr(cut, 1));
  }
  EXPECT_EQ(read_pieces(bytes), expected);
  return expected;
}

}  // namespace lethe

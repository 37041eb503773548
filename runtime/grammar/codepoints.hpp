#pragma once

#include <array>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

namespace lethe {

struct codepoint_range {
  uint32_t low, high;
  auto operator<=>(const codepoint_range&) const = default;
};

/// A set of characters; surrogates are none.
class codepoint_set {
 public:
  explicit codepoint_set(std::pmr::memory_resource* memory) : ranges_(memory) {}
  codepoint_set(std::pmr::memory_resource* memory, std::initializer_list<codepoint_range> ranges)
      : ranges_(memory) {
    for (auto r : ranges) add(r.low, r.high);
  }

  void add(uint32_t low, uint32_t high);
  void add(const codepoint_set& other);
  /// Sorted, apart, without surrogates.
  std::span<const codepoint_range> ranges() const { return ranges_; }
  codepoint_set inverse() const;
  codepoint_set both(const codepoint_set& other) const;
  bool contains(std::span<const codepoint_range> all) const;
  bool empty() const { return ranges_.empty(); }

  static constexpr uint32_t last = 0x10FFFF;

 private:
  void insert(uint32_t low, uint32_t high);
  std::pmr::vector<codepoint_range> ranges_;
};

/// Characters that stand for themselves inside a JSON text and in nearly every token; DEL is left
/// out since many grammars do.
inline constexpr std::array<codepoint_range, 5> plain_characters = {
    {{0x20, 0x21}, {0x23, 0x5B}, {0x5D, 0x7E}, {0x80, 0xD7FF}, {0xE000, 0x10FFFF}}};

/// Bytes that may stand at each place of an encoded character.
struct utf8_span {
  uint32_t length = 0;
  std::array<uint8_t, 4> low = {}, high = {};
};
/// The range as spans that together are exactly its UTF-8.
void append_utf8_spans(codepoint_range range, std::pmr::vector<utf8_span>& out);

}  // namespace lethe

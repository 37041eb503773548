#include "runtime/tokenizer/charsmap.hpp"

#include <algorithm>
#include <cstring>

#include "runtime/base/bytes.hpp"
#include "runtime/base/utf8.hpp"

namespace lethe {
namespace {

// One unit of a Darts-clone double array.
bool has_leaf(uint32_t u) { return u >> 8 & 1; }
uint32_t value_of(uint32_t u) { return u & 0x7FFFFFFF; }
uint32_t label_of(uint32_t u) { return u & 0x800000FF; }
uint32_t offset_of(uint32_t u) { return (u >> 10) << ((u & 1u << 9) >> 6); }

int digit_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

}  // namespace

result<charsmap> charsmap::from_base64(std::string_view text) {
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3 + 3);
  uint32_t bits = 0, count = 0;
  for (char c : text) {
    int digit = digit_of(c);
    if (digit < 0) return fail("precompiled_charsmap: not base64");
    bits = bits << 6 | uint32_t(digit);
    count += 6;
    if (count >= 8) bytes.push_back(char(bits >> (count -= 8) & 0xFF));
  }
  return from_bytes(bytes);
}

result<charsmap> charsmap::from_bytes(std::string_view bytes) {
  charsmap map;
  if (bytes.empty()) return map;
  if (bytes.size() < 4) return fail("precompiled_charsmap: cut off");
  auto trie_bytes = load_le<uint32_t>(as_bytes(bytes).data());
  bytes.remove_prefix(4);
  if (trie_bytes % 4 || trie_bytes > bytes.size())
    return fail("precompiled_charsmap: a trie of {} bytes in {}", trie_bytes, bytes.size());
  map.units_.resize(trie_bytes / 4);
  if (trie_bytes) std::memcpy(map.units_.data(), bytes.data(), trie_bytes);
  map.pool_ = bytes.substr(trie_bytes);
  if (utf8::first_invalid(map.pool_) != std::string_view::npos)
    return fail("precompiled_charsmap: its texts are not UTF-8");
  return map;
}

// Every index is checked: the table comes from a file.
charsmap::hit charsmap::longest(std::string_view text) const noexcept {
  hit best;
  if (units_.empty()) return best;
  uint32_t at = offset_of(units_[0]);
  for (size_t i = 0; i < text.size() && text[i] != 0; i++) {
    auto byte = uint8_t(text[i]);
    at ^= byte;
    if (at >= units_.size() || label_of(units_[at]) != byte) break;
    uint32_t unit = units_[at];
    at ^= offset_of(unit);
    if (!has_leaf(unit)) continue;
    if (at >= units_.size()) break;
    uint32_t begin = value_of(units_[at]);
    if (begin > pool_.size()) break;
    best = {i + 1, std::string_view(pool_).substr(begin)};
  }
  best.with = best.with.substr(0, best.with.find('\0'));
  return best;
}

void charsmap::apply(std::string_view text, std::pmr::string& out) const {
  out.reserve(out.size() + text.size());
  for (size_t i = 0; i < text.size();) {
    hit h = longest(text.substr(i));
    bool whole = i + h.length == text.size() || (uint8_t(text[i + h.length]) & 0xC0) != 0x80;
    if (h.length > 0 && whole) {
      out.append(h.with);
      i += h.length;
    } else {
      auto s = utf8::at(text, i);
      out.append(text.substr(i, s.length));
      i += s.length;
    }
  }
}

}  // namespace lethe

#include "runtime/grammar/codepoints.hpp"

#include <algorithm>

namespace lethe {

void codepoint_set::add(uint32_t low, uint32_t high) {
  if (low < 0xD800) insert(low, std::min(high, 0xD7FFu));
  if (high > 0xDFFF) insert(std::max(low, 0xE000u), std::min(high, last));
}

void codepoint_set::add(const codepoint_set& other) {
  for (auto r : other.ranges_) insert(r.low, r.high);
}

void codepoint_set::insert(uint32_t low, uint32_t high) {
  if (low > high) return;
  // The first range that touches or lies behind the new one; all that touch become one.
  auto first = std::ranges::find_if(ranges_, [low](auto r) { return r.high + 1 >= low; });
  auto behind = first;
  for (; behind != ranges_.end() && behind->low <= high + 1; ++behind) {
    low = std::min(low, behind->low);
    high = std::max(high, behind->high);
  }
  first = ranges_.erase(first, behind);
  ranges_.insert(first, {low, high});
}

codepoint_set codepoint_set::inverse() const {
  codepoint_set out(ranges_.get_allocator().resource());
  uint32_t next = 0;
  for (auto r : ranges_) {
    if (r.low > next) out.add(next, r.low - 1);
    next = r.high + 1;
  }
  if (next <= last) out.add(next, last);
  return out;
}

codepoint_set codepoint_set::both(const codepoint_set& other) const {
  codepoint_set out(ranges_.get_allocator().resource());
  for (auto a : ranges_)
    for (auto b : other.ranges_) out.insert(std::max(a.low, b.low), std::min(a.high, b.high));
  return out;
}

bool codepoint_set::contains(std::span<const codepoint_range> all) const {
  return std::ranges::all_of(all, [this](auto wanted) {
    return std::ranges::any_of(
        ranges_, [wanted](auto r) { return r.low <= wanted.low && wanted.high <= r.high; });
  });
}

namespace {

uint32_t encode(uint32_t c, std::array<uint8_t, 4>& out) {
  if (c < 0x80) return out[0] = uint8_t(c), 1;
  uint32_t length = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  for (uint32_t i = length - 1; i > 0; --i, c >>= 6) out[i] = uint8_t(0x80 | (c & 63));
  constexpr uint8_t lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
  out[0] = uint8_t(lead[length] | c);
  return length;
}

}  // namespace

/// A range whose ends differ in a high place is cut where the lower places are all zeros or ones.
void append_utf8_spans(codepoint_range r, std::pmr::vector<utf8_span>& out) {
  for (uint32_t most : {0x7Fu, 0x7FFu, 0xFFFFu}) {
    if (r.low > most || r.high <= most) continue;
    append_utf8_spans({r.low, most}, out);
    return append_utf8_spans({most + 1, r.high}, out);
  }
  for (uint32_t bits = 6; r.low > 0x7F && bits <= 18; bits += 6) {
    uint32_t mask = (1u << bits) - 1;
    if ((r.low & ~mask) == (r.high & ~mask)) continue;
    if ((r.low & mask) != 0) {
      append_utf8_spans({r.low, r.low | mask}, out);
      return append_utf8_spans({(r.low | mask) + 1, r.high}, out);
    }
    if ((r.high & mask) != mask) {
      append_utf8_spans({r.low, (r.high & ~mask) - 1}, out);
      return append_utf8_spans({r.high & ~mask, r.high}, out);
    }
  }
  utf8_span span;
  span.length = encode(r.low, span.low);
  encode(r.high, span.high);
  out.push_back(span);
}

}  // namespace lethe

#include "runtime/tokenizer/unicode.hpp"

#include <algorithm>
#include <array>
#include <bitset>
#include <optional>
#include <vector>

#include "runtime/base/utf8.hpp"
#include "runtime/tokenizer/unicode_tables.hpp"

namespace lethe::unicode {
namespace {

// Hangul syllables are composed by arithmetic (Unicode 15, section 3.12).
constexpr uint32_t hangul_first = 0xAC00, lead_first = 0x1100, vowel_first = 0x1161,
                   tail_before = 0x11A7;
constexpr uint32_t leads = 19, vowels = 21, tails = 28, syllables = leads * vowels * tails;

const decomposition* row_of(std::span<const decomposition> rows, uint32_t c) {
  auto it = std::ranges::lower_bound(rows, c, {}, &decomposition::code);
  return it != rows.end() && it->code == c ? &*it : nullptr;
}

template <class Range>
const Range* range_of(std::span<const Range> rows, uint32_t c) {
  auto it = std::ranges::upper_bound(rows, c, {}, &Range::first);
  if (it == rows.begin() || (--it)->last < c) return nullptr;
  return &*it;
}

uint8_t class_of(uint32_t c) {
  if (c < 0x300) return 0;
  auto* range = range_of(combining, c);
  return range ? range->combining_class : 0;
}

category category_of(uint32_t c) {
  auto* range = range_of(categories, c);
  return range ? range->is : category::none;
}

// A code point with what sorts it: combining class, then place, then the code itself.
using placed = uint64_t;
constexpr uint32_t code_bits = 21, class_shift = 56;
uint32_t code_in(placed p) { return uint32_t(p & ((1u << code_bits) - 1)); }
uint8_t class_in(placed p) { return uint8_t(p >> class_shift); }

struct segment {
  std::pmr::vector<placed> codes;

  void put(uint32_t c) {
    codes.push_back(placed(class_of(c)) << class_shift | placed(codes.size()) << code_bits | c);
  }
  void put_decomposed(uint32_t c, bool compat);
  void order();
  void compose();
};

void segment::put_decomposed(uint32_t c, bool compat) {
  if (c < 0xA0) return put(c);
  if (c - hangul_first < syllables) {
    uint32_t s = c - hangul_first;
    put(lead_first + s / (vowels * tails));
    put(vowel_first + s % (vowels * tails) / tails);
    if (s % tails) put(tail_before + s % tails);
    return;
  }
  const decomposition* row = compat ? row_of(compatible, c) : nullptr;
  if (!row) row = row_of(canonical, c);
  if (!row) return put(c);
  for (uint32_t d : decomposed.subspan(row->begin, row->count)) put(d);
}

// Sorts each run of combining marks by class, stably: the place is part of the value.
void segment::order() {
  for (auto run = codes.begin(); run != codes.end();) {
    if (class_in(*run) == 0) {
      ++run;
      continue;
    }
    auto end = std::find_if(run, codes.end(), [](placed p) { return class_in(p) == 0; });
    std::sort(run, end);
    run = end;
  }
}

std::optional<uint32_t> composed(uint32_t a, uint32_t b) {
  if (a - lead_first < leads && b - vowel_first < vowels)
    return hangul_first + ((a - lead_first) * vowels + (b - vowel_first)) * tails;
  if (a - hangul_first < syllables && (a - hangul_first) % tails == 0 && b > tail_before &&
      b < tail_before + tails)
    return a + (b - tail_before);
  auto it = std::ranges::lower_bound(compositions, std::pair(a, b), {},
                                     [](auto& row) { return std::pair(row.first, row.second); });
  if (it == compositions.end() || it->first != a || it->second != b) return {};
  return it->composed;
}

void segment::compose() {
  size_t written = 0, starter = SIZE_MAX;
  for (placed p : codes) {
    uint8_t cls = class_in(p);
    bool reaches =
        starter != SIZE_MAX && (written == starter + 1 || class_in(codes[written - 1]) < cls);
    if (reaches) {
      if (auto c = composed(code_in(codes[starter]), code_in(p))) {
        codes[starter] = *c;  // a starter: its class is 0
        continue;
      }
    }
    if (cls == 0) starter = written;
    codes[written++] = p;
  }
  codes.resize(written);
}

bool compat_in(form f) { return f == form::nfkc || f == form::nfkd; }
bool composes_in(form f) { return f == form::nfc || f == form::nfkc; }

/// Characters that a form leaves as they are, whatever stands before them.
class still_characters {
 public:
  explicit still_characters(form f);
  bool has(char32_t c) const noexcept { return c < known && still_[c]; }
  static const still_characters& of(form f) {
    static const std::array<still_characters, 4> all{
        still_characters(form::nfc), still_characters(form::nfd), still_characters(form::nfkc),
        still_characters(form::nfkd)};
    return all[size_t(f)];
  }

 private:
  static constexpr uint32_t known = 0x20000;
  void clear(uint32_t first, uint32_t last) {
    for (uint32_t c = first; c <= last && c < known; c++) still_[c] = false;
  }
  std::bitset<known> still_ = std::bitset<known>().set();
};

still_characters::still_characters(form f) {
  for (auto& range : combining)
    if (range.combining_class > 0) clear(range.first, range.last);
  if (composes_in(f)) {
    for (auto& row : compositions) clear(row.second, row.second);
    clear(vowel_first, vowel_first + vowels - 1);
    clear(tail_before + 1, tail_before + tails - 1);
  } else {
    clear(hangul_first, hangul_first + syllables - 1);
  }
  segment part{std::pmr::vector<placed>(std::pmr::new_delete_resource())};
  auto look = [&](const decomposition& row) {
    part.codes.clear();
    part.put_decomposed(row.code, compat_in(f));
    bool alone = has(code_in(part.codes[0]));
    part.order();
    if (composes_in(f)) part.compose();
    if (!alone || part.codes.size() > 1 || code_in(part.codes[0]) != row.code)
      clear(row.code, row.code);
  };
  for (auto& row : canonical) look(row);
  if (compat_in(f))
    for (auto& row : compatible) look(row);
}

}  // namespace

// A still character begins a segment, but what stands behind it may join it.
void normalize(std::string_view text, form f, std::pmr::string& out) {
  const auto& still = still_characters::of(f);
  segment part{std::pmr::vector<placed>(out.get_allocator().resource())};
  out.reserve(out.size() + text.size());
  for (size_t i = 0; i < text.size();) {
    size_t begin = i, last = i;
    while (i < text.size()) {
      auto s = utf8::at(text, i);
      if (!still.has(s.code)) break;
      last = i;
      i += s.length;
    }
    if (i == text.size()) {
      out.append(text.substr(begin));
      break;
    }
    out.append(text.substr(begin, last - begin));
    part.codes.clear();
    i = last;
    do {
      auto s = utf8::at(text, i);
      part.put_decomposed(s.code, compat_in(f));
      i += s.length;
    } while (i < text.size() && !still.has(utf8::at(text, i).code));
    part.order();
    if (composes_in(f)) part.compose();
    for (placed p : part.codes) utf8::append(out, code_in(p));
  }
}

bool is_white_space(char32_t c) noexcept {
  return (c >= 9 && c <= 13) || c == ' ' || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

bool is_mark(char32_t c) noexcept {
  category is = category_of(c);
  return is == category::mark || is == category::mark_nonspacing;
}

bool is_nonspacing_mark(char32_t c) noexcept { return category_of(c) == category::mark_nonspacing; }

bool is_number(char32_t c) noexcept {
  category is = category_of(c);
  return is == category::number || is == category::number_other;
}

bool is_punctuation(char32_t c) noexcept {
  category is = category_of(c);
  return is == category::punctuation || is == category::connector;
}

bool is_other(char32_t c) noexcept { return category_of(c) == category::other; }

// UTS #18: alphabetic, also where a symbol is (letters in circles and squares), and the joiners.
bool is_word(char32_t c) noexcept {
  bool enclosed = (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
                  (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
  if (enclosed || c == 0x200C || c == 0x200D) return true;
  category is = category_of(c);
  return is == category::letter || is == category::mark || is == category::mark_nonspacing ||
         is == category::number || is == category::connector;
}

void append_lower(char32_t c, std::pmr::string& out) {
  if (c == 0x130) {
    out.append("i\xCC\x87");
    return;
  }
  auto it = std::ranges::lower_bound(lower_cases, uint32_t(c), {}, &lower_case::code);
  utf8::append(out, it != lower_cases.end() && it->code == c ? it->lower : uint32_t(c));
}

}  // namespace lethe::unicode

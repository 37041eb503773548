#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace lethe {

/// Cuts words as the best known split patterns do, one look a character: GPT-2's, and the one of
/// Llama 3 and of Qwen2. What it finds is what PCRE2 matches, whose classes of characters it has.
class word_scanner {
 public:
  /// Nothing unless the expression, in the dialect of tokenizer.json, is one of them to the letter.
  static std::optional<word_scanner> of(std::string_view expression);

  /// Where the word ends that begins at `from`, which lies inside of the text. Every character
  /// belongs to a word. The text must be valid UTF-8.
  size_t end(std::string_view text, size_t from) const noexcept;

 private:
  enum class kind : uint8_t { other, letter, number, space, newline };
  struct rules {
    bool newlines = false;            // may end a word of other characters, and end one of spaces
    bool any_case = false;            // 'LL is cut off as 'll is
    bool long_s = false;              // and so is 's with U+017F
    uint32_t numbers = UINT32_MAX;    // in a word, at most
    bool spaced_numbers = false;      // a space goes with the numbers behind it
    bool any_before_letters = false;  // not only a space goes with the letters behind it
  };
  struct character {
    kind is;
    uint32_t length;
  };
  explicit word_scanner(rules r) : rules_(r), kinds_(0x10000, kind::other) {}
  bool mark_all();
  bool mark(std::string_view all, std::string_view expression, kind k);
  character at(std::string_view text, size_t i) const noexcept;
  size_t past(kind k, std::string_view text, size_t i) const noexcept;
  size_t past_numbers(std::string_view text, size_t i) const noexcept;
  size_t past_others(std::string_view text, size_t i) const noexcept;
  size_t past_spaces(std::string_view text, size_t i) const noexcept;
  size_t contraction(std::string_view text, size_t i) const noexcept;
  bool led(kind first, bool space, kind next) const noexcept;

  rules rules_;
  std::vector<kind> kinds_;  // by code point; those beyond are `other`
};

}  // namespace lethe

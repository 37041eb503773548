#include "runtime/tokenizer/wordpiece.hpp"

#include <algorithm>

namespace lethe {
namespace {

bool starts_character(char b) { return (uint8_t(b) & 0xC0) != 0x80; }

}  // namespace

void wordpiece::encode(std::string_view word, scratch& s, std::pmr::vector<uint32_t>& out) const {
  if (whole_words) return out.push_back(tokens->word_of(word).value_or(unk));
  if (size_t(std::ranges::count_if(word, starts_character)) > characters_max)
    return out.push_back(unk);
  size_t before = out.size();
  for (size_t at = 0; at < word.size();) {
    s.text = at ? continuing_prefix : "";
    size_t prefix = s.text.size();
    s.text += word.substr(at);
    auto id = tokens->word_of(s.text);
    while (!id && s.text.size() > prefix) {
      bool more = true;
      while (more && s.text.size() > prefix) {
        more = !starts_character(s.text.back());
        s.text.pop_back();
      }
      if (s.text.size() > prefix) id = tokens->word_of(s.text);
    }
    if (!id) {
      out.resize(before);
      return out.push_back(unk);
    }
    out.push_back(*id);
    at += s.text.size() - prefix;
  }
}

}  // namespace lethe

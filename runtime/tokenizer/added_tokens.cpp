#include "runtime/tokenizer/added_tokens.hpp"

#include "runtime/base/utf8.hpp"
#include "runtime/tokenizer/unicode.hpp"

namespace lethe {
namespace {

byte_trie trie_of(const std::vector<added_token>& tokens) {
  std::vector<byte_trie::entry> entries;
  for (uint32_t i = 0; i < tokens.size(); i++) entries.emplace_back(tokens[i].text, i);
  return byte_trie(std::move(entries));
}

// Where the character before `at` begins; `at` is not 0.
size_t before(std::string_view text, size_t at) {
  do at--;
  while (at > 0 && (uint8_t(text[at]) & 0xC0) == 0x80);
  return at;
}

bool ends_in_word(std::string_view text, size_t at) {
  return at > 0 && unicode::is_word(utf8::at(text, before(text, at)).code);
}
bool starts_word(std::string_view text, size_t at) {
  return at < text.size() && unicode::is_word(utf8::at(text, at).code);
}

size_t without_space_before(std::string_view text, size_t at, size_t lowest) {
  while (at > lowest && unicode::is_white_space(utf8::at(text, before(text, at)).code))
    at = before(text, at);
  return at;
}
size_t without_space_after(std::string_view text, size_t at) {
  while (at < text.size() && unicode::is_white_space(utf8::at(text, at).code))
    at += utf8::at(text, at).length;
  return at;
}

}  // namespace

added_tokens::added_tokens(std::vector<added_token> tokens)
    : tokens_(std::move(tokens)), trie_(trie_of(tokens_)) {}

uint32_t added_tokens::longest(std::string_view text, size_t at, bool parse_special) const {
  uint32_t found = no_token;
  trie_.each_prefix(text.substr(at), [&](size_t, uint32_t index) {
    if (parse_special || !tokens_[index].special) found = index;
  });
  return found;
}

void added_tokens::cut(std::string_view text, bool parse_special,
                       std::pmr::vector<section>& out) const {
  size_t last = 0;  // the end of the last section
  auto text_until = [&](size_t end) {
    if (end > last) out.push_back({last, end});
  };
  for (size_t at = 0; at < text.size();) {
    while (at < text.size() && !trie_.begins(uint8_t(text[at]))) at++;
    if (at == text.size()) break;
    uint32_t index = longest(text, at, parse_special);
    if (index == no_token) {
      at++;
      continue;
    }
    const added_token& token = tokens_[index];
    size_t begin = at, end = at + token.text.size();
    at = end;
    if (token.single_word && (ends_in_word(text, begin) || starts_word(text, end))) continue;
    if (token.lstrip) begin = without_space_before(text, begin, last);
    if (token.rstrip) end = without_space_after(text, end);  // tokens in there are found as well
    text_until(begin);
    out.push_back({begin, end, token.id});
    last = end;
  }
  text_until(text.size());
}

}  // namespace lethe

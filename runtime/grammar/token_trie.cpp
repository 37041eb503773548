#include "runtime/grammar/token_trie.hpp"

#include <algorithm>

#include "runtime/base/utf8.hpp"
#include "runtime/grammar/codepoints.hpp"
#include "runtime/grammar/grammar.hpp"

namespace lethe {

namespace {

/// How many plain characters the token is; 0: something else.
uint32_t plain_length(std::string_view token) {
  uint32_t length = 0;
  for (size_t at = 0; at < token.size(); ++length) {
    auto c = utf8::at(token, at);
    bool plain = c.state == utf8::sequence_state::whole &&
                 std::ranges::any_of(plain_characters,
                                     [c](auto r) { return r.low <= c.code && c.code <= r.high; });
    if (!plain || length == grammar::run_max) return 0;
    at += c.length;
  }
  return length;
}

}  // namespace

token_trie::token_trie(const tokenizer& words) {
  std::vector<std::string_view> tokens(words.vocab_size());
  for (uint32_t id = 0; id < tokens.size(); ++id)
    if (!words.is_special(id)) tokens[id] = words.token_bytes(id);
  build(tokens);
}

token_trie::token_trie(std::span<const std::string_view> tokens) { build(tokens); }

void token_trie::build(std::span<const std::string_view> tokens) {
  for (auto t : tokens) {
    bytes_ += t;
    ends_.push_back(uint32_t(bytes_.size()));
  }
  std::vector<uint32_t> plain, rest;
  masks_.resize(words() * grammar::run_max);
  for (uint32_t id = 0; id < tokens.size(); ++id) {
    if (tokens[id].empty() || tokens[id].size() > token_bytes_max) continue;
    longest_ = std::max(longest_, tokens[id].size());
    uint32_t length = plain_length(tokens[id]);
    (length > 0 ? plain : rest).push_back(id);
    for (uint32_t l = length; l > 0 && l <= grammar::run_max; ++l)
      masks_[words() * (l - 1) + id / 64] |= uint64_t{1} << id % 64;
  }
  plain_ = branch_of(tokens, std::move(plain));
  rest_ = branch_of(tokens, std::move(rest));
}

token_trie::branch token_trie::branch_of(std::span<const std::string_view> tokens,
                                         std::vector<uint32_t> ids) {
  std::ranges::sort(ids, [&](uint32_t a, uint32_t b) {
    return tokens[a] != tokens[b] ? tokens[a] < tokens[b] : a < b;
  });
  branch made;
  std::vector<uint32_t> path;  // of nodes, down to the last token
  std::string_view last;
  auto leave = [&](size_t depth) {
    for (; path.size() > depth; path.pop_back())
      made.nodes[path.back()].skip = uint32_t(made.nodes.size());
  };
  for (uint32_t i = 0; i < ids.size(); ++i) {
    auto token = tokens[ids[i]];
    auto parted = std::ranges::mismatch(last, token).in2;
    leave(size_t(parted - token.begin()));
    for (; path.size() < token.size(); path.push_back(uint32_t(made.nodes.size() - 1)))
      made.nodes.push_back(
          {.first = i, .depth = uint16_t(path.size() + 1), .byte = uint8_t(token[path.size()])});
    last = token;
  }
  leave(0);
  made.ids = std::move(ids);
  return made;
}

std::string_view token_trie::bytes(uint32_t id) const {
  if (id >= ends_.size()) return {};
  uint32_t begin = id ? ends_[id - 1] : 0;
  return std::string_view(bytes_).substr(begin, ends_[id] - begin);
}

std::span<const uint64_t> token_trie::plain_up_to(uint32_t characters) const {
  uint32_t l = std::min<uint32_t>(characters, grammar::run_max);
  return std::span(masks_).subspan(words() * (l - 1), words());
}

}  // namespace lethe

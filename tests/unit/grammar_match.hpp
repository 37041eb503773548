#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "runtime/grammar/gbnf.hpp"
#include "runtime/grammar/grammar_run.hpp"
#include "runtime/grammar/pattern_rules.hpp"
#include "runtime/grammar/schema.hpp"

namespace lethe {

/// A vocabulary of all single bytes and some longer tokens; id 0 is a control token.
inline std::vector<std::string> small_vocabulary() {
  std::vector<std::string> all{""};
  for (int b = 0; b < 256; ++b) all.emplace_back(1, char(b));
  for (const char* t : {"{\"",
                        "\":",
                        "\",",
                        "\"}",
                        "\",\"",
                        "\": ",
                        ", \"",
                        "true",
                        "false",
                        "null",
                        "the",
                        " the",
                        "a b",
                        "ab",
                        "abc",
                        "12",
                        "34",
                        "1.",
                        "0",
                        "00",
                        "[]",
                        "{}",
                        "[[",
                        "]]",
                        "}}",
                        "\\n",
                        "\\\"",
                        "\\u",
                        "é",
                        "日本",
                        "\xE6\x97",
                        "\x97\xA5",
                        " ",
                        "  ",
                        "\n  ",
                        "name",
                        "\"name\"",
                        "-1",
                        "e+",
                        "héllo wörld",
                        "0123456789012345678901234567890123456789"})
    all.emplace_back(t);
  return all;
}

inline const token_trie& small_trie() {
  static const auto words = small_vocabulary();
  static const token_trie trie = [] {
    std::vector<std::string_view> views(words.begin(), words.end());
    return token_trie(views);
  }();
  return trie;
}

/// A run of one grammar with its memory.
class matched {
 public:
  explicit matched(result<grammar> (*make)(std::string_view, std::pmr::memory_resource*),
                   std::string_view text, uint32_t choices = 1,
                   const token_trie& words = small_trie())
      : words_(words) {
    auto made = make(text, &memory_);
    if (!made) {
      why_ = made.why().text;
      return;
    }
    run_ = std::make_unique<grammar_run>(*std::move(made), words, choices, words.size(), &memory_);
  }

  bool good() const { return run_ != nullptr; }
  const std::string& why() const { return why_; }
  grammar_run& run() { return *run_; }

  /// Whether the whole text is in the language; byte by byte, from the beginning.
  bool takes(std::string_view text, uint32_t choice = 0) {
    for (char c : text)
      if (!run_->accept(choice, {&c, 1})) return false;
    return run_->may_end(choice);
  }

  /// The mask says of every token what the bytes say.
  bool mask_is_right(uint32_t choice = 0) {
    auto mask = run_->allowed(choice);
    std::vector<uint64_t> kept(mask.begin(), mask.end());
    if (kept.empty()) return false;
    for (uint32_t id = 0; id < words_.size(); ++id)
      if (bool(kept[id / 64] >> id % 64 & 1) != run_->can_follow(choice, words_.bytes(id)))
        return false;
    return true;
  }

  std::vector<uint32_t> allowed(uint32_t choice = 0) {
    auto mask = run_->allowed(choice);
    std::vector<uint32_t> ids;
    for (uint32_t id = 0; id < words_.size() && !mask.empty(); ++id)
      if (mask[id / 64] >> id % 64 & 1) ids.push_back(id);
    return ids;
  }

 private:
  std::pmr::monotonic_buffer_resource memory_;
  const token_trie& words_;
  std::unique_ptr<grammar_run> run_;
  std::string why_;
};

inline bool gbnf_takes(std::string_view grammar, std::string_view text) {
  matched m(parse_gbnf, grammar);
  EXPECT_TRUE(m.good()) << m.why();
  return m.good() && m.takes(text);
}
inline std::string gbnf_refusal(std::string_view grammar) {
  return matched(parse_gbnf, grammar).why();
}
inline bool pattern_takes(std::string_view pattern, std::string_view text) {
  matched m(pattern_grammar, pattern);
  EXPECT_TRUE(m.good()) << m.why();
  return m.good() && m.takes(text);
}
inline bool schema_takes(std::string_view schema, std::string_view text) {
  matched m(schema_grammar, schema);
  EXPECT_TRUE(m.good()) << m.why();
  return m.good() && m.takes(text);
}
inline std::string schema_refusal(std::string_view schema) {
  return matched(schema_grammar, schema).why();
}

}  // namespace lethe

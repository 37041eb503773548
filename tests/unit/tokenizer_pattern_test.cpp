#include "runtime/tokenizer/pattern.hpp"

#include <gtest/gtest.h>

#include <map>

#include "runtime/tokenizer/oniguruma.hpp"
#include "runtime/tokenizer/split_patterns.hpp"

namespace lethe {
namespace {

std::vector<std::string> matches(std::string_view expression, std::string_view text) {
  auto p = pattern::regex(expression);
  EXPECT_TRUE(p) << (p ? "" : p.why().text);
  std::vector<std::string> out;
  if (!p) return out;
  match_session session(text.size(), std::pmr::get_default_resource());
  for (size_t from = 0; from <= text.size();) {
    match m = p->find(text, from, session);
    EXPECT_NE(m.state, match::gave_up);
    if (m.state != match::found) break;
    out.emplace_back(text.substr(m.begin, m.end - m.begin));
    from = m.end > m.begin ? m.end : m.end + 1;
  }
  return out;
}

using texts = std::vector<std::string>;

TEST(Pattern, ReadsOnigurumasDialect) {
  EXPECT_EQ(matches(R"(\s+)", "a \u0085b\u180Ec"), (texts{" \u0085"}));  // U+180E is no space
  EXPECT_EQ(matches(R"(\w+)", "a\u0301_\u203Fb-c"), (texts{"a\u0301_\u203Fb", "c"}));
  EXPECT_EQ(matches(R"([^\s\w]+)", "a+-b"), (texts{"+-"}));
  EXPECT_EQ(matches(R"(\h+)", "xBEEFy"), (texts{"BEEF"}));
  EXPECT_EQ(matches(R"(\W)", "a\u0301!"), (texts{"!"}));
  EXPECT_EQ(matches(R"([]a]+)", "b]a"), (texts{"]a"}));
  EXPECT_EQ(matches("^b$", "a\nb\nc"), (texts{"b"}));
  EXPECT_EQ(matches("a.b", "a\nb a\rb"), (texts{"a\rb"}));
  EXPECT_EQ(matches(R"((?i:'LL)\p{L}++)", "'llx"), (texts{"'llx"}));
}

TEST(Pattern, JoinsAndIntersectsSets) {
  EXPECT_EQ(matches("[a[bc]]+", "xabcx"), (texts{"abc"}));
  EXPECT_EQ(matches(R"([^(\s|[.,!?])]+)", "a(b c.d"), (texts{"a", "b", "c", "d"}));
  EXPECT_EQ(matches("[[a-c][^x-z]]+", "axyzbd"), (texts{"a", "bd"}));
  EXPECT_EQ(matches("[^[^a-c]]+", "xabcx"), (texts{"abc"}));
  EXPECT_EQ(matches(R"([\p{L}&&[^\p{Han}]]+)", "ab\u4E2D\u00E9"), (texts{"ab", "\u00E9"}));
  EXPECT_EQ(matches("[a-d&&[^b]&&[^c]]+", "abcda"), (texts{"a", "da"}));
  EXPECT_EQ(matches("[^a-d&&b-e]+", "abea"), (texts{"a", "ea"}));
  EXPECT_EQ(matches(R"([^\W\d]+)", "a1_b"), (texts{"a", "_b"}));
  EXPECT_EQ(matches(R"([\w-]+)", "a-b c"), (texts{"a-b", "c"}));
  EXPECT_EQ(matches(R"([x[+-]a]+)", "x+,-a"), (texts{"x+", "-a"}));
  EXPECT_EQ(matches(R"([\x{61}-\x{63}\u0064]+)", "abcde"), (texts{"abcd"}));
}

TEST(Pattern, ReadsRubysEscapesAndOptions) {
  EXPECT_EQ(matches(R"(\u0061\v)", "a\v a\n"), (texts{"a\v"}));
  EXPECT_EQ(matches("(?m:a.b)", "a\nb"), (texts{"a\nb"}));
  EXPECT_EQ(matches("(?mi-x:A.)", "a\n"), (texts{"a\n"}));
  EXPECT_EQ(matches("a{,2}b", "aaab"), (texts{"aab"}));
  EXPECT_EQ(matches(R"(\be\u0301\b)", "e\u0301 e\u0301s"), (texts{"e\u0301"}));
  EXPECT_EQ(matches(R"(\Bb)", "ab b"), (texts{"b"}));
}

TEST(Pattern, RefusesByNameWhatItCannotSay) {
  auto why = [](std::string_view e) { return pattern::regex(e).why().text; };
  EXPECT_NE(why("[&&a]").find("nothing before &&"), std::string::npos);
  EXPECT_NE(why("[a[bc]").find("without its ]"), std::string::npos);
  EXPECT_NE(why(std::string(30, '[') + "a" + std::string(30, ']')).find("nested"),
            std::string::npos);
  EXPECT_NE(why("(a").find("does not compile"), std::string::npos);
  EXPECT_NE(why("a\\").find("backslash"), std::string::npos);
  EXPECT_NE(why(std::string(70'000, 'a')).find("65536"), std::string::npos);
}

TEST(Pattern, FindsAcrossLongStretchesWithoutAMatch) {
  std::string text(5'000, 'x');
  for (size_t i = 0; i < 3'000; i += 3) text.replace(i, 3, "\u20AC");
  text += "7";
  EXPECT_EQ(matches(R"(\p{N})", text), (texts{"7"}));
}

TEST(Pattern, GivesUpRatherThanHang) {
  auto p = pattern::regex("(?:x+x+)+[yz]");
  ASSERT_TRUE(p);
  std::string text(4'000, 'x');
  match_session session(text.size(), std::pmr::get_default_resource());
  EXPECT_EQ(p->find(text, 0, session).state, match::gave_up);
}

TEST(Pattern, TakesAllItsMemoryFromTheCaller) {
  auto p = pattern::regex(R"((?:(a)|b)+c)");
  ASSERT_TRUE(p);
  struct counting : std::pmr::memory_resource {
    std::map<void*, size_t> live;
    size_t taken = 0;
    void* do_allocate(size_t n, size_t a) override {
      void* at = std::pmr::new_delete_resource()->allocate(n, a);
      live[at] = n;
      taken += n;
      return at;
    }
    void do_deallocate(void* at, size_t n, size_t a) override {
      EXPECT_EQ(live[at], n);
      live.erase(at);
      std::pmr::new_delete_resource()->deallocate(at, n, a);
    }
    bool do_is_equal(const memory_resource& o) const noexcept override { return this == &o; }
  } memory;
  std::string text(100'000, 'a');  // deeper than the compiled code's stack
  text += 'c';
  {
    match_session session(text.size(), &memory);
    EXPECT_EQ(p->find(text, 0, session).state, match::found);
  }
  EXPECT_GT(memory.taken, text.size());
  EXPECT_TRUE(memory.live.empty());
}

TEST(SplitPatterns, AllCompile) {
  std::string names = split_patterns::names() + ", ";
  size_t begin = 0, families = 0;
  for (size_t end; (end = names.find(", ", begin)) != names.npos; begin = end + 2, families++) {
    auto family = split_patterns::find(names.substr(begin, end - begin));
    ASSERT_TRUE(family);
    for (auto expression : family->patterns) EXPECT_TRUE(pattern::regex(expression)) << expression;
  }
  EXPECT_GT(families, 40u);
  EXPECT_FALSE(split_patterns::find("no-such-model"));
}

TEST(SplitPatterns, CutAsTheirModelsDo) {
  auto cut = [](std::string_view pre, std::string_view text) {
    return matches(split_patterns::find(pre)->patterns[0], text);
  };
  EXPECT_EQ(cut("llama-bpe", "I'LL 12345 x\n\n y"),
            (texts{"I", "'LL", " ", "123", "45", " x", "\n\n", " y"}));
  EXPECT_EQ(cut("qwen2", "12 ab"), (texts{"1", "2", " ab"}));
  EXPECT_EQ(cut("tekken", "HelloWorld 1/x"), (texts{"Hello", "World", " ", "1", "/x"}));
  EXPECT_EQ(cut("gpt-4o", "don't HTTPServer"), (texts{"don't", " HTTPServer"}));
  EXPECT_EQ(cut("gpt-2", "don't  x"), (texts{"don", "'t", " ", " x"}));
}

}  // namespace
}  // namespace lethe

// Answers of a form: what comes out fits, whoever shares the batch, and how choices end.

#include <gtest/gtest.h>

#include "runtime/base/mapped_file.hpp"
#include "runtime/grammar/gbnf.hpp"
#include "runtime/grammar/schema.hpp"
#include "runtime/json/json_slice.hpp"
#include "tests/e2e/engine_run.hpp"
#include "tests/places.hpp"

namespace lethe::e2e {
namespace {

const std::filesystem::path tiny = std::filesystem::path(places::source) / "models/tiny";

const tokenizer& words() {
  static const tokenizer made = [] {
    auto file = mapped_file::open(tiny / "tokenizer.json");
    auto read = tokenizer::from_json(as_text(file->bytes()));
    if (!read) throw std::runtime_error(read.why().text);
    return *std::move(read);
  }();
  return made;
}

const token_trie& trie() {
  static const token_trie made(words());
  return made;
}

struct formed {
  result<grammar> (*make)(std::string_view, std::pmr::memory_resource*) = parse_gbnf;
  std::string text;
  uint32_t max_tokens = 300, choices = 1;
  sampling how{.temperature = 1, .seed = 7};
  std::vector<uint32_t> stop_ids{*words().eos()};
  const token_trie* trie = nullptr;
};

std::unique_ptr<request> ask(engine& e, const formed& f, uint32_t vocab) {
  auto made = request::make(size_t{64} << 20);
  auto rules = f.make(f.text, (*made)->memory());
  EXPECT_TRUE(bool(rules)) << (rules ? "" : rules.why().text);
  std::vector<uint32_t> prompt{1, 2, 3};
  auto asked = (*made)->ask({.prompt = prompt,
                             .max_tokens = f.max_tokens,
                             .choices = f.choices,
                             .how = f.how,
                             .stop_ids = f.stop_ids,
                             .form = {&*rules, f.trie ? f.trie : &trie()}},
                            vocab);
  EXPECT_TRUE(bool(asked));
  EXPECT_TRUE(bool(e.submit(**made)));
  return std::move(*made);
}

std::string text_of(std::span<const uint32_t> ids) {
  std::string text;
  for (uint32_t id : ids) text += words().token_bytes(id);
  return text;
}

TEST(EngineForm, ChoicesAreWholeJsonAndEndByThemselves) {
  auto m = open(tiny);
  auto e = start(m, small());
  formed f{.make = schema_grammar,
           .text = R"({"type":"object","properties":{
      "a":{"type":"string","maxLength":9},
      "b":{"type":"array","items":{"type":"integer","maximum":99},"maxItems":4}},
      "required":["a","b"]})",
           .choices = 6};
  auto r = ask(*e, f, m.vocab());
  auto got = collect(*r);
  for (size_t i = 0; i < got.ids.size(); ++i) {
    EXPECT_EQ(got.reasons[i], finish_reason::stop);
    auto text = text_of(got.ids[i]);
    EXPECT_TRUE(bool(check_json(text))) << text;
  }
  EXPECT_NE(text_of(got.ids[0]), text_of(got.ids[1]));
}

TEST(EngineForm, DoesNotDependOnCompanyAndLeavesItAlone) {
  auto m = open(tiny);
  formed f{
      .make = schema_grammar,
      .text = R"({"type":"object","additionalProperties":{"type":"number"},"maxProperties":3})"};
  wanted plain{.prompt = {4, 5, 6}, .max_tokens = 20};
  auto e = start(m, small());
  auto alone = ask(*e, f, m.vocab());
  auto first = collect(*alone);
  auto plain_alone = run_all(*e, {plain}, m.vocab())[0];
  auto beside = submit(*e, plain, m.vocab());
  auto one = ask(*e, f, m.vocab()), two = ask(*e, {.text = "root ::= [a-z]{9}"}, m.vocab());
  EXPECT_EQ(collect(*one), first);
  EXPECT_EQ(text_of(collect(*two).ids[0]).size(), 9u);
  EXPECT_EQ(collect(*beside), plain_alone);
}

TEST(EngineForm, EndsAtOnceWhereOnlyTheEndMayFollow) {
  auto m = open(tiny);
  auto e = start(m, small());
  auto got = collect(*ask(*e, {.text = "root ::= \"ab\"", .stop_ids = {}}, m.vocab()));
  EXPECT_EQ(text_of(got.ids[0]), "ab");
  EXPECT_EQ(got.reasons[0], finish_reason::stop);
  got = collect(*ask(*e, {.text = "root ::= \"\"", .stop_ids = {}}, m.vocab()));
  EXPECT_TRUE(got.ids[0].empty());
  EXPECT_EQ(got.reasons[0], finish_reason::stop);
}

TEST(EngineForm, TheEndIsAllowedOnlyWhereTheTextIsWhole) {
  auto m = open(tiny);
  auto e = start(m, small());
  std::vector<logit_bias> bias{{*words().eos(), 100}};  // it wants to end at once
  formed f{.text = "root ::= \"a\"{5,}", .how = {.temperature = 0}};
  f.how.bias = bias;
  auto got = collect(*ask(*e, f, m.vocab()));
  EXPECT_EQ(text_of(got.ids[0]), "aaaaa");
  EXPECT_EQ(got.reasons[0], finish_reason::stop);
}

TEST(EngineForm, AVocabularyThatCannotGoOnFailsItsChoiceOnly) {
  auto m = open(tiny);
  auto e = start(m, small());
  // No token has the byte that must follow: the only way to a dead end.
  std::vector<std::string> spelled;
  for (uint32_t id = 0; id < words().vocab_size(); ++id) {
    std::string t(words().token_bytes(id));
    spelled.push_back(t.find('b') == t.npos && !words().is_special(id) ? t : "");
  }
  token_trie without_b(std::vector<std::string_view>(spelled.begin(), spelled.end()));
  wanted plain{.prompt = {4, 5, 6}, .max_tokens = 20};
  auto beside = submit(*e, plain, m.vocab());
  auto got = collect(*ask(*e, {.text = "root ::= \"aab\"", .trie = &without_b}, m.vocab()));
  EXPECT_EQ(got.reasons[0], finish_reason::stuck);
  EXPECT_EQ(text_of(got.ids[0]), "aa");
  auto others = collect(*beside);
  EXPECT_EQ(others.reasons[0], finish_reason::length);
  EXPECT_EQ(others.ids[0].size(), 20u);
}

TEST(EngineForm, ReportsTheProbabilitiesOfTheRawLogits) {
  auto m = open(tiny);
  auto e = start(m, small());
  formed f{.text = "root ::= [a-z]{1}",
           .how = {.temperature = 0, .want_logprob = true, .logprobs = 3}};
  auto got = collect(*ask(*e, f, m.vocab()));
  auto raw = run_all(*e, {{.prompt = {1, 2, 3}, .how = f.how}}, m.vocab())[0];
  ASSERT_EQ(got.top.size(), 3u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(got.top[i].id, raw.top[i].id);
  EXPECT_LT(got.logprobs[0], 0);
}

}  // namespace
}  // namespace lethe::e2e

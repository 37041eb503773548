// The text of an answer while its tokens arrive.
#include <gtest/gtest.h>

#include "runtime/serve/answer_text.hpp"
#include "runtime/serve/open_model.hpp"
#include "runtime/serve/served_model.hpp"
#include "tests/places.hpp"

namespace lethe {
namespace {

std::string text_of(std::initializer_list<uint32_t> ids, std::span<const uint32_t> marks,
                    bool skip_special = true) {
  auto words = open_tokenizer(std::string(places::source) + "/models/tiny");
  EXPECT_TRUE(words);
  auto* memory = std::pmr::get_default_resource();
  choice_state choice(memory);
  choice.ids.assign(ids);
  choice.published = uint32_t(ids.size());
  choice.reason = finish_reason::stop;
  answer_text text(&*words, *stop_matcher::make({}, false, memory), memory,
                   {.marks = marks, .skip_special = skip_special});
  text.read(choice);
  return std::string(text.text());
}

constexpr uint32_t letter_e = 36, half_a_character = 127, im_end = 509, eot = 510;

TEST(AnswerText, ControlTokensAreNoPartOfIt) {
  EXPECT_EQ(text_of({letter_e, im_end, letter_e}, {}), "EE");
  EXPECT_EQ(text_of({letter_e, im_end, letter_e}, {}, false), "E<|im_end|>E") << "unless asked for";
}

TEST(AnswerText, MarksAreSpelledWhereTheyStand) {
  const uint32_t marks[] = {im_end};
  EXPECT_EQ(text_of({letter_e, im_end, letter_e, eot}, marks), "E<|im_end|>E");
  // What is before a mark can't be completed behind it.
  EXPECT_EQ(text_of({half_a_character, im_end, letter_e}, marks), "\uFFFD<|im_end|>E");
}

TEST(AnswerText, OnlyControlTokensAreMarks) {
  auto words = open_tokenizer(std::string(places::source) + "/models/tiny");
  ASSERT_TRUE(words);
  EXPECT_TRUE(tool_mark_ids(tool_format::hermes, *words).empty());
  auto json = R"({"model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"},
    "added_tokens": [{"id": 1, "content": "[TOOL_CALLS]", "special": true}]})";
  auto own = tokenizer::from_json(json);
  ASSERT_TRUE(own) << own.why().text;
  EXPECT_EQ(tool_mark_ids(tool_format::mistral, *own), std::vector<uint32_t>{1});
  EXPECT_TRUE(tool_mark_ids(tool_format::hermes, *own).empty());
}

}  // namespace
}  // namespace lethe

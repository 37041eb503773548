// What a request may ask of the engine, and what it is refused.

#include <gtest/gtest.h>

#include <thread>

#include "tests/e2e/engine_run.hpp"
#include "tests/places.hpp"

namespace lethe::e2e {
namespace {

const std::filesystem::path tiny = std::filesystem::path(places::source) / "models/tiny";

TEST(Engine, SaysTheSameForEveryThreadCountAndChoiceOfPages) {
  auto m = open(tiny);
  wanted w{.prompt = {1, 2, 3, 4, 5, 6, 7, 8, 9},
           .max_tokens = 20,
           .how = {.temperature = 0.8f, .top_p = 0.9f, .seed = 42, .want_logprob = true}};
  std::optional<answered> first;
  for (uint32_t threads : {1u, 2u, 3u})
    for (uint32_t page : {1u, 7u, 64u}) {
      auto e = start(m, small({.threads = threads, .page_tokens = page}));
      auto got = run_all(*e, {w}, m.vocab())[0];
      if (!first) first = got;
      EXPECT_EQ(got, *first) << threads << " threads, pages of " << page;
    }
}

TEST(Engine, EveryInstructionSetGivesTheSameBits) {
  auto m = open(tiny);
  wanted w{
      .prompt = {9, 8, 7, 6, 5}, .max_tokens = 12, .how = {.temperature = 0, .want_logprob = true}};
  std::optional<answered> first;
  for (const cpu_row* row : cpu_rows()) {
    if (!runs_here(*row)) continue;
    auto e = start(m, small({.row = row}));
    auto got = run_all(*e, {w}, m.vocab())[0];
    if (!first) first = got;
    EXPECT_EQ(got, *first) << row->name;
  }
}

TEST(Engine, QuantizedAnswersDoNotDependOnTheCutEither) {
  auto m = open(tiny, {.quantize = dtype::q8_0});
  wanted w{
      .prompt = {9, 8, 7, 6, 5}, .max_tokens = 12, .how = {.temperature = 0, .want_logprob = true}};
  std::optional<answered> first;
  for (cut c : {cut{1, 1}, cut{2, 1}, cut{4, 1}, cut{2, 2}}) {
    auto e = start(m, small({.ranks = c, .chunk_tokens = 2}));
    auto got = run_all(*e, {w, w, w}, m.vocab());
    if (!first) first = got[0];
    for (const auto& g : got) EXPECT_EQ(g, *first) << c.tensor << "x" << c.pipeline;
  }
}

// Beside streams its prompt comes in other chunks (prompt_tokens_beside) than alone.
TEST(Engine, ALongPromptBesideManyStreamsSaysWhatItSaysAlone) {
  auto m = open(tiny);
  wanted asks{.max_tokens = 12, .how = {.temperature = 0, .want_logprob = true}};
  for (uint32_t i = 0; i < 400; ++i) asks.prompt.push_back(1 + i * 7 % 200);
  wanted says{.prompt = {3, 1, 4}, .max_tokens = 30, .how = {.temperature = 0}};
  auto e = start(m, small());
  auto alone = run_all(*e, {asks}, m.vocab())[0];
  auto among = run_all(*e, {says, says, says, says, says, says, asks}, m.vocab());
  EXPECT_EQ(among.back(), alone);
}

TEST(Engine, ChoicesShareThePromptAndDifferByTheirDraws) {
  auto m = open(tiny);
  auto e = start(m, small({.page_tokens = 4}));
  wanted w{.prompt = {1, 2, 3, 4, 5, 6}, .max_tokens = 16, .choices = 4, .how = {.seed = 3}};
  auto four = run_all(*e, {w}, m.vocab())[0];
  ASSERT_EQ(four.ids.size(), 4u);
  EXPECT_NE(four.ids[0], four.ids[1]);
  w.choices = 1;
  EXPECT_EQ(run_all(*e, {w}, m.vocab())[0].ids[0], four.ids[0]);
}

TEST(Engine, StopsAChoiceAndIgnoresStopsThatMeanNone) {
  auto m = open(tiny);
  auto e = start(m, small());
  auto r = submit(*e, {.prompt = {1, 2, 3}, .max_tokens = 400, .choices = 2}, m.vocab());
  e->stop(*r, 0);  // too early, or not: either way nothing breaks
  e->stop(*r, 7);
  while (r->choice(1).published < 3) std::this_thread::yield();
  e->stop(*r, 1);
  while (r->choice(1).reason == finish_reason::none) std::this_thread::yield();
  EXPECT_EQ(r->choice(1).reason, finish_reason::stop);
  e->cancel(*r);
  collect(*r);
}

TEST(Engine, RefusesWhatCouldNeverRun) {
  auto m = open(tiny);
  auto e = start(m, small({.context = 64}));
  auto made = request::make(size_t{1} << 20);
  std::vector<uint32_t> prompt(60, 1);
  ASSERT_TRUE(bool((*made)->ask({.prompt = prompt, .max_tokens = 5}, m.vocab())));
  auto sent = e->submit(**made);
  ASSERT_FALSE(bool(sent));
  EXPECT_NE(sent.why().text.find("context"), std::string::npos) << sent.why().text;
}

TEST(Engine, TakesExactlyTheContext) {
  auto m = open(tiny);
  auto e = start(m, small({.context = 64}));
  std::vector<uint32_t> prompt(60, 1);
  auto got = run_all(*e, {{.prompt = prompt, .max_tokens = 4}}, m.vocab())[0];
  EXPECT_EQ(got.ids[0].size(), 4u);
  EXPECT_EQ(got.reasons[0], finish_reason::length);
}

TEST(Request, RefusesIdsOutOfRangeAndEmptyPrompts) {
  auto made = request::make(size_t{1} << 20);
  std::vector<uint32_t> ids{1, 512};
  EXPECT_FALSE(bool((*made)->ask({.prompt = ids, .max_tokens = 1}, 512)));
  EXPECT_FALSE(bool((*made)->ask({.prompt = {}, .max_tokens = 1}, 512)));
  ids[1] = 511;
  EXPECT_FALSE(bool((*made)->ask({.prompt = ids, .max_tokens = 0}, 512)));
  EXPECT_FALSE(bool((*made)->ask({.prompt = ids, .max_tokens = 1, .choices = 129}, 512)));
  EXPECT_TRUE(bool((*made)->ask({.prompt = ids, .max_tokens = 1, .choices = 128}, 512)));
}

TEST(Engine, RefusesCutsThatDoNotFit) {
  auto m = open(tiny);
  auto e = engine::start(m.weights(), {.ranks = {3, 1}});
  ASSERT_FALSE(bool(e));
  EXPECT_NE(e.why().text.find("heads"), std::string::npos) << e.why().text;
  EXPECT_FALSE(bool(engine::start(m.weights(), {.ranks = {1, 3}})));
  EXPECT_FALSE(bool(engine::start(m.weights(), {.page_tokens = 65})));
  EXPECT_TRUE(bool(engine::start(m.weights(), {.page_tokens = 64})));
}

}  // namespace
}  // namespace lethe::e2e

// Guessed tokens change when an answer's tokens come, and nothing else: whatever is asked, however
// the engine is cut, the same bits as token by token.

#include <gtest/gtest.h>

#include <thread>

#include "tests/e2e/engine_run.hpp"
#include "tests/places.hpp"

namespace lethe::e2e {
namespace {

const std::filesystem::path tiny = std::filesystem::path(places::source) / "models/tiny";

engine_config looking(engine_config c = {}) {
  c.looks_ahead = true;
  return small(c);
}

/// With few words an answer soon repeats itself, as often in another way than before.
const logit_bias few_words[] = {{3, 30}, {10, 30}, {17, 30}, {24, 30}};

sampling greedy() { return {.temperature = 0, .bias = few_words}; }

std::vector<uint32_t> said_before(uint32_t tokens, uint32_t again_after) {
  std::vector<uint32_t> ids;
  for (uint32_t i = 0; i < tokens; ++i) ids.push_back(3 + i % again_after * 7);
  return ids;
}

std::vector<wanted> asked_differently() {
  return {
      {.prompt = said_before(40, 9), .max_tokens = 90, .how = greedy()},
      {.prompt = said_before(40, 9),
       .max_tokens = 60,
       .how = {.temperature = 0, .bias = few_words, .want_logprob = true, .logprobs = 3}},
      {.prompt = said_before(50, 5),
       .max_tokens = 40,
       .choices = 3,
       .how = {.bias = few_words, .seed = 5}},
      {.prompt = said_before(50, 5),
       .max_tokens = 40,
       .how = {.temperature = 0.2f, .top_k = 5, .top_p = 0.9f, .seed = 6, .want_logprob = true}},
      {.prompt = said_before(30, 4), .max_tokens = 50, .prompt_logprobs = true},
      {.prompt = {1, 2}, .max_tokens = 1},
  };
}

/// Each alone and all at once.
std::vector<answered> answers(engine& e, const opened& m) {
  auto asks = asked_differently();
  auto out = run_all(e, asks, m.vocab());
  for (const auto& one : asks) out.push_back(run_all(e, {one}, m.vocab())[0]);
  return out;
}

TEST(EngineLookahead, SaysTheSameInFewerSteps) {
  auto m = open(tiny);
  wanted w{.prompt = said_before(40, 9), .max_tokens = 90, .how = greedy()};
  auto one_by_one = start(m, small());
  auto expected = run_all(*one_by_one, {w}, m.vocab())[0];
  auto plain = one_by_one->numbers();
  EXPECT_EQ(plain.guesses, 0u) << "nobody asked for it";

  auto e = start(m, looking());
  EXPECT_EQ(run_all(*e, {w}, m.vocab())[0], expected);
  auto n = e->numbers();
  EXPECT_GT(n.guesses_right, 20u);
  EXPECT_LE(n.guesses_right, n.guesses);
  EXPECT_LE(n.steps + n.guesses_right / 2, plain.steps);
  EXPECT_EQ(n.tokens_decoded, plain.tokens_decoded);
  EXPECT_EQ(n.tokens_prefilled, plain.tokens_prefilled);
}

TEST(EngineLookahead, HoweverTheEngineIsCut) {
  auto m = open(tiny);
  const engine_config ways[] = {{},
                                {.threads = 2},
                                {.page_tokens = 1},
                                {.page_tokens = 7, .chunk_tokens = 5},
                                {.ranks = {2, 1}},
                                {.ranks = {1, 2}},
                                {.ranks = {2, 2}, .page_tokens = 3},
                                {.step_tokens = 4, .chunk_tokens = 4},
                                {.running = 4}};
  auto expected = answers(*start(m, small()), m);
  for (size_t i = 0; i < std::size(ways); ++i) {
    auto e = start(m, looking(ways[i]));
    auto got = answers(*e, m);
    for (size_t n = 0; n < got.size(); ++n) EXPECT_EQ(got[n], expected[n]) << i << ": " << n;
    EXPECT_GT(e->numbers().guesses_right, 20u) << i;
    EXPECT_GT(e->numbers().guesses, e->numbers().guesses_right) << i << ": none was wrong";
  }
}

// A wrong guess lies in the cache until the next step: with scales and in groups of its own there.
TEST(EngineLookahead, WithEveryTypeOfCacheAndInstructions) {
  auto m = open(tiny, {.quantize = dtype::q8_0});
  for (kv_type kv : {kv_type::f32, kv_type::bf16, kv_type::int8}) {
    auto expected = answers(*start(m, small({.kv = kv})), m);
    for (const cpu_row* row : cpu_rows()) {
      if (!runs_here(*row)) continue;
      auto e = start(m, looking({.row = row, .kv = kv}));
      auto got = answers(*e, m);
      for (size_t n = 0; n < got.size(); ++n) EXPECT_EQ(got[n], expected[n]) << row->name << n;
      EXPECT_GT(e->numbers().guesses_right, 20u);
    }
  }
}

TEST(EngineLookahead, EndsWhereAnAnswerEnds) {
  auto m = open(tiny);
  auto one_by_one = start(m, small()), e = start(m, looking());
  wanted w{.prompt = said_before(40, 9), .how = greedy()};
  for (w.max_tokens = 1; w.max_tokens < 40; ++w.max_tokens) {
    auto got = run_all(*e, {w}, m.vocab())[0];
    EXPECT_EQ(got, run_all(*one_by_one, {w}, m.vocab())[0]) << w.max_tokens;
    EXPECT_EQ(got.ids[0].size(), w.max_tokens);
    EXPECT_EQ(got.reasons[0], finish_reason::length);
  }
}

/// An id that ends the answer, wherever it comes among the guesses.
answered until(engine& e, uint32_t id, uint32_t vocab) {
  auto made = request::make(size_t{8} << 20);
  auto prompt = said_before(40, 9);
  const uint32_t stops[] = {id};
  EXPECT_TRUE(bool((*made)->ask(
      {.prompt = prompt, .max_tokens = 60, .how = greedy(), .stop_ids = stops}, vocab)));
  EXPECT_TRUE(bool(e.submit(**made)));
  return collect(**made);
}

TEST(EngineLookahead, StopsAtAnIdAmongItsGuesses) {
  auto m = open(tiny);
  auto one_by_one = start(m, small()), e = start(m, looking());
  wanted w{.prompt = said_before(40, 9), .max_tokens = 60, .how = greedy()};
  auto all = run_all(*e, {w}, m.vocab())[0].ids[0];
  for (uint32_t id : all) {
    auto got = until(*e, id, m.vocab());
    EXPECT_EQ(got, until(*one_by_one, id, m.vocab()));
    EXPECT_EQ(got.reasons[0], finish_reason::stop);
  }
}

TEST(EngineLookahead, DoesNotGuessWhereADrawDependsOnTheOneBefore) {
  auto m = open(tiny);
  auto one_by_one = start(m, small()), e = start(m, looking());
  wanted w{.prompt = said_before(40, 9),
           .max_tokens = 60,
           .how = {.temperature = 0, .frequency_penalty = 0.01f, .bias = few_words}};
  EXPECT_EQ(run_all(*e, {w}, m.vocab())[0], run_all(*one_by_one, {w}, m.vocab())[0]);
  EXPECT_EQ(e->numbers().guesses, 0u);
}

// More streams than a step with guesses has rows: they are decoded as ever.
TEST(EngineLookahead, LeavesManyStreamsAlone) {
  auto m = open(tiny);
  auto one_by_one = start(m, small()), e = start(m, looking());
  std::vector<wanted> all(lookahead::most + 1,
                          {.prompt = said_before(40, 9), .max_tokens = 64, .how = greedy()});
  for (size_t i = 0; i < all.size(); ++i) all[i].prompt[0] = uint32_t(i);
  auto expected = run_all(*one_by_one, all, m.vocab());
  auto got = run_all(*e, all, m.vocab());
  for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(got[i], expected[i]);
}

TEST(EngineLookahead, CancelledAmongGuessesIsGoneAndWiped) {
  auto m = open(tiny);
  auto e = start(m, looking());
  for (uint32_t tokens : {5u, 20u, 41u}) {
    auto r =
        submit(*e, {.prompt = said_before(40, 9), .max_tokens = 300, .choices = 2, .how = greedy()},
               m.vocab());
    while (r->choice(0).published < tokens) std::this_thread::yield();
    e->cancel(*r);
    collect(*r);
  }
  EXPECT_EQ(e->numbers().pages_reserved, 0u);
  EXPECT_EQ(e->numbers().pages_written, 0u);
  auto left = e->step_bytes();
  EXPECT_TRUE(std::ranges::all_of(left, [](auto b) { return uint8_t(b) == 0; }));
}

}  // namespace
}  // namespace lethe::e2e

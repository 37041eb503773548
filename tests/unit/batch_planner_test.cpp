#include "runtime/batch/planner.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace lethe {
namespace {

planner_state make(const planner_config& config) {
  auto made = make_planner(config);
  if (!made) ADD_FAILURE() << made.why().text;
  return *std::move(made);
}

planner_config roomy() { return {.pages = 1000, .page_tokens = 4, .step_tokens = 64}; }

void ask(planner_state& state, const request_ask& a) {
  auto done = enqueue(state, a);
  ASSERT_TRUE(done) << done.why().text;
}

/// Plans and completes one step.
std::vector<step_result> step(planner_state& state, step_plan* seen = nullptr) {
  auto plan = plan_step(state);
  if (!plan) return {};
  if (seen) *seen = *plan;
  return complete(state, *plan);
}

/// Steps until nothing is to do; each choice is finished after its max_tokens.
uint32_t run_out(planner_state& state) {
  uint32_t steps = 0;
  while (auto plan = plan_step(state)) {
    ++steps;
    for (const auto& r : complete(state, *plan)) {
      const request_ask& a = state.requests.at(r.request).ask;
      uint32_t stored = r.position + r.logit_rows;
      if (r.samples == 1 && stored + 1 == a.prompt_tokens + a.max_tokens)
        finish(state, r.request, r.choice);
    }
  }
  return steps;
}

TEST(Planner, RunsOneRequestFromPromptToGone) {
  planner_state state = make(roomy());
  ask(state, {.request = 9, .prompt_tokens = 6, .max_tokens = 3});
  step_plan plan;
  auto results = step(state, &plan);
  ASSERT_EQ(plan.entries.size(), 1u);
  EXPECT_EQ(plan.entries[0].tokens, 6u);
  EXPECT_EQ(plan.entries[0].logit_rows, 1u);
  EXPECT_EQ(plan.entries[0].page_count, 2u);
  EXPECT_FALSE(plan.wipe_scratch);
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].position, 5u);
  EXPECT_EQ(results[0].samples, 1u);
  results = step(state, &plan);
  EXPECT_EQ(plan.entries[0].position, 6u);
  EXPECT_EQ(results[0].position, 6u);
  step(state, &plan);
  EXPECT_EQ(plan.entries[0].position, 7u);
  finish(state, 9, 0);
  EXPECT_TRUE(take_gone(state).empty()) << "its pages are not wiped yet";
  step(state, &plan);
  EXPECT_TRUE(plan.entries.empty());
  EXPECT_EQ(plan.wipes.size(), 2u);
  EXPECT_TRUE(plan.wipe_scratch);
  EXPECT_EQ(take_gone(state), std::vector<uint64_t>{9});
  EXPECT_TRUE(take_gone(state).empty());
  EXPECT_FALSE(plan_step(state));
  EXPECT_EQ(load_of(state).pages_free, 1000u);
}

TEST(Planner, FitsAPoolOfExactlyTheNeededSize) {
  for (uint32_t page_tokens = 1; page_tokens <= 64; ++page_tokens)
    for (uint32_t choices : {1, 3}) {
      request_ask a{.request = 1, .prompt_tokens = 37, .max_tokens = 20, .choices = choices};
      planner_config c{.pages = uint32_t(pages_reserved_for(a, page_tokens)),
                       .page_tokens = page_tokens};
      planner_state exact = make(c);
      ask(exact, a);
      run_out(exact);
      EXPECT_EQ(take_gone(exact).size(), 1u);
      if (--c.pages == 0) continue;
      planner_state less = make(c);
      auto refused = enqueue(less, a);
      ASSERT_FALSE(refused);
      EXPECT_NE(refused.why().text.find("pages"), std::string::npos);
    }
}

TEST(Planner, QueuesWhatFitsOnlyLaterAndLetsNobodyOvertake) {
  planner_state state = make({.pages = 10, .page_tokens = 1});
  ask(state, {.request = 1, .prompt_tokens = 5, .max_tokens = 2});  // 6 pages
  ask(state, {.request = 2, .prompt_tokens = 4, .max_tokens = 2});  // 5: one less is free
  ask(state, {.request = 3, .prompt_tokens = 1, .max_tokens = 1});  // would fit
  step(state);
  EXPECT_EQ(load_of(state).queued, 2u);
  EXPECT_EQ(load_of(state).running, 1u);
  run_out(state);
  EXPECT_EQ(take_gone(state), (std::vector<uint64_t>{1, 3, 2}));  // 3 is the shorter
}

TEST(Planner, TakesDecodesFirstAndFillsTheBudgetWithPrompts) {
  planner_config c = roomy();
  c.step_tokens = 10, c.chunk_max = 6;
  planner_state state = make(c);
  ask(state, {.request = 1, .prompt_tokens = 2, .max_tokens = 50});
  ask(state, {.request = 2, .prompt_tokens = 2, .max_tokens = 50});
  step(state);
  ask(state, {.request = 3, .prompt_tokens = 30, .max_tokens = 5});
  ask(state, {.request = 4, .prompt_tokens = 30, .max_tokens = 5});
  step_plan plan;
  step(state, &plan);
  ASSERT_EQ(plan.entries.size(), 4u);
  EXPECT_EQ(plan.tokens, 10u);
  uint32_t tokens[] = {1, 1, 6, 2}, rows[] = {1, 1, 0, 0};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(plan.entries[i].tokens, tokens[i]);
    EXPECT_EQ(plan.entries[i].logit_rows, rows[i]);
  }
}

/// Prompt tokens of the next step where so many decode and so many others have long prompts.
uint32_t prompt_tokens_of_a_step(uint32_t decodes, uint32_t prompts) {
  planner_state state = make({.pages = 4000, .chunk_max = 512});
  for (uint32_t i = 0; i < decodes; ++i)
    ask(state, {.request = i + 1, .prompt_tokens = 2, .max_tokens = 50});
  step(state);
  state.token_ns = 1;  // fast
  for (uint32_t i = 0; i < prompts; ++i)
    ask(state, {.request = 100 + i, .prompt_tokens = 1000, .max_tokens = 5});
  step_plan plan;
  step(state, &plan);
  return plan.tokens - decodes;
}

TEST(Planner, GivesPromptsTheirShareOfAStepBesideDecodes) {
  EXPECT_EQ(prompt_tokens_of_a_step(0, 1), 512u);
  EXPECT_EQ(prompt_tokens_of_a_step(1, 1), 256u);
  EXPECT_EQ(prompt_tokens_of_a_step(2, 1), 170u);
  EXPECT_EQ(prompt_tokens_of_a_step(15, 1), prompt_tokens_fair) << "not a sixteenth of the step";
  EXPECT_EQ(prompt_tokens_of_a_step(2, 6), 384u);
  EXPECT_EQ(prompt_tokens_of_a_step(1, 15), 480u);
  EXPECT_EQ(prompt_tokens_of_a_step(1, 63), 504u);
}

TEST(Planner, NeverStopsAPromptForDecodes) {
  planner_state state = make({.pages = 4000});
  for (uint32_t i = 1; i <= 40; ++i)
    ask(state, {.request = i, .prompt_tokens = 1, .max_tokens = 400});
  step(state);
  ask(state, {.request = 99, .prompt_tokens = 640, .max_tokens = 1});
  for (uint32_t i = 0; i < 640 / prompt_tokens_least; ++i) {
    step_plan plan;
    step(state, &plan);
    EXPECT_EQ(plan.tokens, 40 + prompt_tokens_least);
  }
  EXPECT_TRUE(state.prefilling.empty());
}

TEST(Planner, EndsEveryRequestWithABudgetOfOne) {
  planner_state state =
      make({.pages = 50, .page_tokens = 2, .step_tokens = 1, .chunk_max = 1, .logit_rows = 1});
  for (uint64_t id = 1; id <= 5; ++id)
    ask(state, {.request = id,
                .prompt_tokens = 3,
                .max_tokens = 4,
                .choices = 2,
                .prompt_logits = id == 3});
  EXPECT_GE(run_out(state), 5u * (3 + 2 * 3));
  EXPECT_EQ(take_gone(state).size(), 5u);
}

TEST(Planner, RotatesDecodesThatExceedTheBudget) {
  planner_config c = roomy();
  c.logit_rows = 3;
  planner_state state = make(c);
  ask(state, {.request = 1, .prompt_tokens = 1, .max_tokens = 99, .choices = 7});
  step(state);
  std::unordered_map<uint32_t, int> decoded;
  for (int i = 0; i < 70; ++i)
    for (const auto& r : step(state)) ++decoded[r.choice];
  EXPECT_EQ(decoded.size(), 7u);
  for (auto [choice, times] : decoded) EXPECT_EQ(times, 30) << choice;
}

TEST(Planner, KeepsAsManyEqualPlansInFlightAsThereAreStages) {
  planner_config c = roomy();
  c.depth = 3;
  planner_state state = make(c);
  for (uint64_t id = 1; id <= 10; ++id)
    ask(state, {.request = id, .prompt_tokens = 1, .max_tokens = 99});
  step(state);
  std::deque<step_plan> flying;
  for (int i = 0; i < 3; ++i) flying.push_back(*plan_step(state));
  EXPECT_FALSE(plan_step(state));
  for (int i = 0; i < 30; ++i) {
    EXPECT_GE(flying.back().entries.size(), 2u);
    EXPECT_LE(flying.back().entries.size(), 4u);
    complete(state, flying.front());
    flying.pop_front();
    flying.push_back(*plan_step(state));
  }
}

TEST(Planner, SharesThePromptAndCopiesItsLastPage) {
  planner_state state = make(roomy());
  request_ask a{.request = 1, .prompt_tokens = 10, .max_tokens = 3, .choices = 3};
  EXPECT_EQ(pages_reserved_for(a, 4), 2u + 3 * 1);
  ask(state, a);
  auto results = step(state);
  ASSERT_EQ(results.size(), 3u);
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(results[i].choice, i);
    EXPECT_EQ(results[i].first_logit_row, 0u);
    EXPECT_EQ(results[i].position, 9u);
  }
  EXPECT_EQ(load_of(state).tokens_stored, 10u);
  finish(state, 1, 0);  // its last page must outlive it until the others have their copies
  step_plan plan;
  step(state, &plan);
  EXPECT_TRUE(plan.wipes.empty());
  EXPECT_TRUE(plan.wipe_scratch);
  ASSERT_EQ(plan.copies.size(), 2u);
  EXPECT_EQ(plan.copies[0].from, plan.copies[1].from);
  EXPECT_NE(plan.copies[0].to, plan.copies[1].to);
  EXPECT_EQ(plan.copies[0].tokens, 2u);
  EXPECT_EQ(plan.pages[0], plan.pages[3]);
  EXPECT_EQ(plan.pages[2], plan.copies[0].to);
  uint32_t source = plan.copies[0].from;
  EXPECT_EQ(load_of(state).tokens_stored, 8u + 2 * 3);
  step(state, &plan);
  EXPECT_EQ(plan.wipes, std::vector<uint32_t>{source});
  EXPECT_TRUE(plan.copies.empty());
}

TEST(Planner, ReturnsEveryPromptRowOnce) {
  planner_config c = roomy();
  c.logit_rows = 3;
  planner_state state = make(c);
  ask(state,
      {.request = 1, .prompt_tokens = 7, .max_tokens = 1, .choices = 2, .prompt_logits = true});
  uint32_t next = 0, samples = 0;
  for (int i = 0; i < 3; ++i)
    for (const auto& r : step(state)) {
      samples += r.samples;
      if (r.choice > 0) continue;
      EXPECT_EQ(r.position, next);
      next += r.logit_rows;
    }
  EXPECT_EQ(next, 7u);
  EXPECT_EQ(samples, 2u);
}

TEST(Planner, CancelsInEveryPhase) {
  planner_state state = make({.pages = 8, .page_tokens = 4, .step_tokens = 4});
  ask(state, {.request = 1, .prompt_tokens = 8, .max_tokens = 9});
  ask(state, {.request = 2, .prompt_tokens = 8, .max_tokens = 9});
  ask(state, {.request = 3, .prompt_tokens = 8, .max_tokens = 9});
  auto plan = plan_step(state);  // a chunk of 1; 2 is admitted and untouched; 3 waits
  EXPECT_TRUE(cancel(state, 3));
  EXPECT_EQ(take_gone(state), std::vector<uint64_t>{3});
  EXPECT_TRUE(cancel(state, 2));
  EXPECT_EQ(take_gone(state), std::vector<uint64_t>{2});
  EXPECT_EQ(load_of(state).pages_free, 4u);
  EXPECT_TRUE(cancel(state, 1));
  EXPECT_TRUE(cancel(state, 1));
  finish(state, 1, 0);  // late, harmless
  EXPECT_EQ(load_of(state).pages_reserved, 4u) << "its plan is in flight";
  EXPECT_TRUE(complete(state, *plan).empty()) << "results of the dead";
  EXPECT_EQ(load_of(state).pages_retiring, 1u);
  EXPECT_EQ(load_of(state).pages_free, 7u);
  step(state);
  EXPECT_EQ(take_gone(state), std::vector<uint64_t>{1});
  EXPECT_EQ(load_of(state).pages_free, 8u);
  EXPECT_FALSE(cancel(state, 1));
}

TEST(Planner, RefusesAsksThatCanNeverRun) {
  planner_config c = roomy();
  c.queue_max = 2, c.context_max = 100, c.running_max = 5;
  planner_state state = make(c);
  EXPECT_FALSE(enqueue(state, {.request = 1, .prompt_tokens = 0, .max_tokens = 1}));
  EXPECT_FALSE(enqueue(state, {.request = 1, .prompt_tokens = 1, .max_tokens = 0}));
  EXPECT_FALSE(enqueue(state, {.request = 1, .prompt_tokens = 1, .max_tokens = 1, .choices = 0}));
  EXPECT_FALSE(enqueue(state, {.request = 1, .prompt_tokens = 1, .max_tokens = 1, .choices = 6}));
  EXPECT_FALSE(enqueue(state, {.request = 1, .prompt_tokens = 60, .max_tokens = 41}));
  EXPECT_FALSE(enqueue(state, {.request = 1, .prompt_tokens = ~0u, .max_tokens = ~0u}));
  ask(state, {.request = 1, .prompt_tokens = 60, .max_tokens = 40});
  EXPECT_FALSE(enqueue(state, {.request = 1, .prompt_tokens = 1, .max_tokens = 1}));
  ask(state, {.request = 2, .prompt_tokens = 1, .max_tokens = 1, .choices = 5});
  EXPECT_FALSE(enqueue(state, {.request = 3, .prompt_tokens = 1, .max_tokens = 1}));
}

TEST(Planner, RefusesConfigsAboveItsLimits) {
  auto with = [](auto change) {
    planner_config c = roomy();
    change(c);
    return bool(make_planner(c));
  };
  EXPECT_TRUE(with([](auto&) {}));
  EXPECT_FALSE(with([](auto& c) { c.pages = 0; }));
  EXPECT_FALSE(with([](auto& c) { c.page_tokens = 0; }));
  EXPECT_TRUE(with([](auto& c) { c.page_tokens = limits::page_tokens_max; }));
  EXPECT_FALSE(with([](auto& c) { c.page_tokens = limits::page_tokens_max + 1; }));
  EXPECT_FALSE(with([](auto& c) { c.step_tokens = 0; }));
  EXPECT_FALSE(with([](auto& c) { c.step_tokens = limits::step_tokens_max + 1; }));
  EXPECT_FALSE(with([](auto& c) { c.chunk_max = 0; }));
  EXPECT_FALSE(with([](auto& c) { c.logit_rows = 0; }));
  EXPECT_FALSE(with([](auto& c) { c.depth = 0; }));
  EXPECT_FALSE(with([](auto& c) { c.running_max = 0; }));
  EXPECT_FALSE(with([](auto& c) { c.running_max = limits::running_max + 1; }));
  EXPECT_FALSE(with([](auto& c) { c.context_max = limits::context_max + 1; }));
}

TEST(PlannerDeathTest, EndsTheProcessWhenMisused) {
  planner_state state = make(roomy());
  EXPECT_DEATH(finish(state, 1, 0), "broken invariant");
  EXPECT_DEATH(complete(state, {}), "broken invariant");
  ask(state, {.request = 1, .prompt_tokens = 1, .max_tokens = 1});
  step(state);
  EXPECT_DEATH(plan_step(state), "broken invariant") << "max_tokens reached, not finished";
}

}  // namespace
}  // namespace lethe

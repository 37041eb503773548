#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/batch/step_loop.hpp"

namespace lethe {
namespace {

constexpr uint64_t ms = 1'000'000;

step_plan plan_of(uint32_t tokens, uint32_t decodes = 0) {
  step_plan plan;
  plan.tokens = tokens, plan.logit_rows = decodes;
  return plan;
}

/// What beside so many decodes a step holds of a long prompt, where a token takes so long.
uint32_t prompt_tokens(uint32_t decodes, uint64_t token_ns, uint32_t depth = 1) {
  auto state = *make_planner({.pages = 4000, .chunk_max = 512, .depth = depth});
  for (uint32_t i = 0; i < decodes; ++i)
    EXPECT_TRUE(enqueue(state, {.request = i + 1, .prompt_tokens = 2, .max_tokens = 50}));
  if (auto plan = plan_step(state)) complete(state, *plan);
  learn_pace(state, plan_of(100), 100 * token_ns);
  EXPECT_TRUE(enqueue(state, {.request = 999, .prompt_tokens = 1000, .max_tokens = 5}));
  auto plan = plan_step(state);
  return plan->tokens - plan->logit_rows;
}

TEST(Pace, OfAFastMachineChangesNothing) {
  EXPECT_EQ(prompt_tokens(1, 1), 256u);
  EXPECT_EQ(prompt_tokens(1, step_ns_beside_decodes / 257), 256u);
  EXPECT_EQ(prompt_tokens(15, ms), prompt_tokens_fair);
  EXPECT_EQ(prompt_tokens(0, 100 * ms), 512u) << "nobody waits for its next token";
}

TEST(Pace, OfASlowOneEndsAStepInTime) {
  EXPECT_EQ(prompt_tokens(1, step_ns_beside_decodes / 256), 255u) << "one fewer than its share";
  EXPECT_EQ(prompt_tokens(1, 5 * ms), 65u);
  EXPECT_EQ(prompt_tokens(15, 5 * ms), 51u);
  EXPECT_EQ(prompt_tokens(16, 5 * ms, 4), 62u) << "of the decodes a step has a fourth";
}

TEST(Pace, OfASlowerOneTakesLongerForEnough) {
  EXPECT_EQ(prompt_tokens(1, step_ns_beside_decodes / 50), 49u);
  EXPECT_EQ(prompt_tokens(1, step_ns_beside_decodes / 49), prompt_tokens_apt);
  EXPECT_EQ(prompt_tokens(1, step_ns_beside_decodes / 48), prompt_tokens_apt);
  EXPECT_EQ(prompt_tokens(1, step_ns_of_apt / 49), prompt_tokens_apt);
  EXPECT_EQ(prompt_tokens(1, step_ns_of_apt / 48), 47u);
  EXPECT_EQ(prompt_tokens(17, 10 * ms), 33u);
  EXPECT_EQ(prompt_tokens(18, 10 * ms), prompt_tokens_least);
  EXPECT_EQ(prompt_tokens(19, 10 * ms), prompt_tokens_least);
  EXPECT_EQ(prompt_tokens(60, 10 * ms), prompt_tokens_least) << "decodes alone take longer";
  EXPECT_EQ(prompt_tokens(1, 3600'000 * ms), prompt_tokens_least);
}

TEST(Pace, IsLearntFromStepsWithManyTokensOfPrompts) {
  auto state = *make_planner({.pages = 10});
  learn_pace(state, plan_of(15), 900 * ms);
  learn_pace(state, plan_of(64 + 15, 64), 900 * ms);
  EXPECT_EQ(state.token_ns, 0u) << "reading all weights for few tokens, or decodes";
  learn_pace(state, plan_of(64 + 16, 64), 80 * ms);
  EXPECT_EQ(state.token_ns, ms) << "the first is believed";
  learn_pace(state, plan_of(100), 200 * ms);
  EXPECT_EQ(state.token_ns, ms + ms / 4);
  for (int i = 0; i < 40; ++i) learn_pace(state, plan_of(100), 200 * ms);
  EXPECT_NEAR(double(state.token_ns), 2 * ms, 9);
  for (int i = 0; i < 90; ++i) learn_pace(state, plan_of(100), 0);
  EXPECT_EQ(state.token_ns, 1u) << "a step that takes no time is no division by 0";
}

TEST(Pace, OfAMachineThatStoodStillIsSoonRight) {
  auto state = *make_planner({.pages = 10});
  learn_pace(state, plan_of(100), 100 * ms);
  learn_pace(state, plan_of(100), 60'000 * ms);
  EXPECT_EQ(state.token_ns, ms + ms / 4);
}

/// Ranks that take their time: 10 ms for each token, and draw nothing.
class slow_ranks final : public step_ranks {
 public:
  slow_ranks(uint64_t& clock, std::vector<uint32_t>& steps) : clock_(clock), steps_(steps) {}
  void submit(const step_plan& plan, const step_data&) override { steps_.push_back(plan.tokens); }
  result<void> wait_oldest() override {
    clock_ += steps_.back() * 10 * ms;
    return {};
  }

 private:
  uint64_t& clock_;
  std::vector<uint32_t>& steps_;
};

/// Asks for what `loop` then owes; it must live until the loop is over.
std::unique_ptr<request> ask(step_loop& loop, uint64_t id, size_t prompt, uint32_t tokens) {
  auto made = *request::make(size_t{1} << 20);
  std::vector<uint32_t> ids(prompt, 1);
  EXPECT_TRUE(made->ask({.prompt = ids, .max_tokens = tokens, .how = {.temperature = 0}}, 8));
  loop.outstanding.fetch_add(1);
  made->set_id(id);
  loop.box.put({.kind = letter::what::submit, .id = id, .from = made.get(), .at_ns = loop.now()});
  return made;
}

/// A step loop over them, and the time that they took.
struct slow_engine {
  uint64_t clock = 1;
  std::vector<uint32_t> steps;  // their tokens
  planner_config config{.pages = 200};
  step_loop loop{*make_planner(config), std::make_unique<slow_ranks>(clock, steps),
                 *step_buffers::make(1, config.step_tokens, config.logit_rows, 8), 8};

  slow_engine() {
    loop.now = [this] { return clock; };
  }
  void turn_until(step_loop::turned what) {
    int turns = 0;
    while (loop.turn() != what) ASSERT_LT(++turns, 1000);
  }
  ~slow_engine() {
    loop.box.put({.kind = letter::what::shutdown});
    turn_until(step_loop::turned::over);
  }
};

TEST(Pace, KeepsAStreamGoingBesideALongPrompt) {
  std::unique_ptr<request> stream, other;
  slow_engine e;
  stream = ask(e.loop, 1, 40, 60);
  e.loop.turn();
  other = ask(e.loop, 2, 500, 2);
  e.turn_until(step_loop::turned::idle);
  ASSERT_EQ(e.steps.front(), 40u);
  e.steps.erase(e.steps.begin());
  EXPECT_EQ(*std::ranges::max_element(e.steps), 1 + prompt_tokens_apt) << "half a second";
  EXPECT_EQ(std::ranges::count(e.steps, 1 + prompt_tokens_apt), 10) << "all but the prompt's last";
}

// Else who comes next could tell by the lengths of its steps what was asked before.
TEST(Pace, IsForgottenWhenNobodyRuns) {
  std::unique_ptr<request> first, second, stream;
  slow_engine e;
  first = ask(e.loop, 1, 100, 20);
  second = ask(e.loop, 2, 100, 2);
  e.loop.turn();
  EXPECT_EQ(e.loop.planner().token_ns, 10 * ms);
  while (!second->gone()) e.loop.turn();
  EXPECT_NE(e.loop.planner().token_ns, 0u) << "another still runs";
  e.turn_until(step_loop::turned::idle);
  EXPECT_EQ(e.loop.planner().token_ns, 0u);
  stream = ask(e.loop, 3, 2, 20);
  e.loop.turn();
  first = ask(e.loop, 4, 100, 2);
  e.steps.clear();
  e.loop.turn();
  EXPECT_EQ(e.steps[0], 1 + prompt_tokens_least) << "a few tokens tell it again";
  EXPECT_EQ(e.loop.planner().token_ns, 10 * ms);
  e.turn_until(step_loop::turned::idle);
}

}  // namespace
}  // namespace lethe

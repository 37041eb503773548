#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/batch/step_loop.hpp"

namespace lethe {
namespace {

constexpr uint64_t ms = 1'000'000;

step_plan plan_of(uint32_t tokens) {
  step_plan plan;
  plan.tokens = tokens;
  return plan;
}

/// What beside so many decodes a step holds of a long prompt, where a token takes so long.
uint32_t prompt_tokens(uint32_t decodes, uint64_t row_ns) {
  auto state = *make_planner({.pages = 4000, .chunk_max = 512});
  for (uint32_t i = 0; i < decodes; ++i)
    EXPECT_TRUE(enqueue(state, {.request = i + 1, .prompt_tokens = 2, .max_tokens = 50}));
  if (auto plan = plan_step(state)) complete(state, *plan);
  learn_pace(state, plan_of(100), 100 * row_ns);
  EXPECT_TRUE(enqueue(state, {.request = 999, .prompt_tokens = 1000, .max_tokens = 5}));
  return plan_step(state)->tokens - decodes;
}

TEST(Pace, OfAFastMachineChangesNothing) {
  EXPECT_EQ(prompt_tokens(1, 1), 256u);
  EXPECT_EQ(prompt_tokens(1, 500 * ms / 257), 256u);
  EXPECT_EQ(prompt_tokens(15, ms), prompt_tokens_least);
  EXPECT_EQ(prompt_tokens(0, 100 * ms), 512u) << "nobody waits for its next token";
}

TEST(Pace, OfASlowOneEndsAStepInTime) {
  EXPECT_EQ(prompt_tokens(1, 500 * ms / 256), 255u) << "one fewer than its share";
  EXPECT_EQ(prompt_tokens(1, 5 * ms), 99u);
  EXPECT_EQ(prompt_tokens(15, 5 * ms), 85u);
  EXPECT_EQ(prompt_tokens(18, 10 * ms), prompt_tokens_always);
  EXPECT_EQ(prompt_tokens(19, 10 * ms), prompt_tokens_always);
  EXPECT_EQ(prompt_tokens(60, 10 * ms), prompt_tokens_always) << "decodes alone take longer";
  EXPECT_EQ(prompt_tokens(1, 3600'000 * ms), prompt_tokens_always);
}

TEST(Pace, IsLearntFromStepsOfManyTokens) {
  auto state = *make_planner({.pages = 10});
  learn_pace(state, plan_of(prompt_tokens_always - 1), 900 * ms);
  EXPECT_EQ(state.row_ns, 0u) << "reading all weights for few tokens";
  learn_pace(state, plan_of(prompt_tokens_always), prompt_tokens_always * ms);
  EXPECT_EQ(state.row_ns, ms) << "the first is believed";
  learn_pace(state, plan_of(100), 200 * ms);
  EXPECT_EQ(state.row_ns, ms + ms / 4);
  for (int i = 0; i < 40; ++i) learn_pace(state, plan_of(100), 200 * ms);
  EXPECT_NEAR(double(state.row_ns), 2 * ms, 9);
  for (int i = 0; i < 90; ++i) learn_pace(state, plan_of(100), 0);
  EXPECT_NEAR(double(state.row_ns), 1, 9) << "a step that takes no time is no division by 0";
}

TEST(Pace, OfAMachineThatStoodStillIsSoonRight) {
  auto state = *make_planner({.pages = 10});
  learn_pace(state, plan_of(100), 100 * ms);
  learn_pace(state, plan_of(100), 60'000 * ms);
  EXPECT_EQ(state.row_ns, ms + ms / 4);
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

TEST(Pace, KeepsAStreamGoingBesideALongPrompt) {
  uint64_t clock = 1;
  std::vector<uint32_t> steps;
  planner_config c{.pages = 200};
  step_loop loop(*make_planner(c), std::make_unique<slow_ranks>(clock, steps),
                 *step_buffers::make(1, c.step_tokens, c.logit_rows, 8), 8);
  loop.now = [&clock] { return clock; };
  auto stream = ask(loop, 1, 40, 60);
  loop.turn();
  auto other = ask(loop, 2, 500, 2);
  while (loop.turn() != step_loop::turned::idle) {
  }
  loop.box.put({.kind = letter::what::shutdown});
  while (loop.turn() != step_loop::turned::over) {
  }
  ASSERT_EQ(steps.front(), 40u);
  steps.erase(steps.begin());
  EXPECT_EQ(*std::ranges::max_element(steps), 50u) << "half a second";
  EXPECT_EQ(std::ranges::count(steps, 50u), 10) << "49 tokens of the prompt in each but the last";
}

}  // namespace
}  // namespace lethe

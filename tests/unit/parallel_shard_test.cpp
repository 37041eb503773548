#include "parallel/shard.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "parallel/plan_check.hpp"
#include "tests/unit/own_stack.hpp"
#include "tests/unit/parallel_grid_run.hpp"
#include "tests/unit/parallel_random_model.hpp"

namespace lethe::testing {
namespace {

model_shape small_shape() {
  model_shape s;
  s.layers = 2, s.hidden = 64, s.heads = 6, s.kv_heads = 2, s.head_dim = 32, s.ffn = 96;
  s.vocab = 53, s.qkv_bias = true;
  s.rope.rotary = 32;
  return s;
}

bool zero(bytes_view b) {
  return std::ranges::all_of(b, [](std::byte x) { return x == std::byte{0}; });
}

bool scratch_zero(const grid& g) {
  bool all = true;
  for (uint32_t r = 0; r < g.ranks(); ++r) all = all && zero(g.rank(r).scratch());
  return all;
}

/// Asks for the last row of each entry only, as a prefill's end does.
void ask_for_last_rows(step_plan& plan) {
  plan.logit_rows = 0;
  for (plan_entry& e : plan.entries) e.logit_rows = 1, e.first_logit_row = plan.logit_rows++;
}

/// How many pages of all ranks hold anything.
uint32_t pages_in_use(const grid& g, uint32_t pages) {
  uint32_t used = 0;
  for (uint32_t r = 0; r < g.ranks(); ++r)
    for (uint32_t id = 0; id < pages; ++id) used += !std::ranges::all_of(g.rank(r).page(id), zero);
  return used;
}

result<void> step(grid& g, const step_plan& plan, const step_data& data = {}) {
  g.submit(plan, data);
  return g.wait_oldest();
}

struct running {
  std::unique_ptr<random_model> model;
  std::vector<prompt> prompts;
  manner how;
  grid_config config;
  std::unique_ptr<grid> ranks;
};

running start(manner how, random_model::types types = {}) {
  how.page_tokens = 4;
  auto m = std::make_unique<random_model>(small_shape(), types);
  std::vector<prompt> prompts{random_prompt(11, 53, 1), random_prompt(6, 53, 2)};
  grid_config config = config_for(prompts, how);
  auto g = grid::start(m->weights, config);
  check(bool(g));
  return {std::move(m), prompts, how, config, *std::move(g)};
}

const manner ways[] = {{.ranks = {1, 1}, .threads = 1}, {.ranks = {1, 1}, .threads = 3},
                       {.ranks = {2, 1}, .threads = 2}, {.ranks = {3, 1}, .threads = 1},
                       {.ranks = {1, 2}, .threads = 2}, {.ranks = {6, 2}, .threads = 1}};

TEST(Shard, WipesEveryPageAndAllScratchWhenAPlanSaysSo) {
  for (const manner& how : ways)
    for (auto types :
         {random_model::types{}, random_model::types{dtype::q8_0, dtype::q8_0, dtype::q8_0}}) {
      running r = start(how, types);
      auto steps = plan_all(r.prompts, r.how);
      ask_for_last_rows(steps[0]->plan);
      ASSERT_TRUE(step(*r.ranks, steps[0]->plan, steps[0]->data(53)));
      // The control: both prompts lie in pages of every rank, activations in every scratch.
      EXPECT_EQ(pages_in_use(*r.ranks, r.config.pages), 5 * r.ranks->ranks());
      for (uint32_t i = 0; i < r.ranks->ranks(); ++i)
        EXPECT_FALSE(zero(r.ranks->rank(i).scratch()));

      step_plan one_ends;
      one_ends.wipes = {0, 2, 4};
      ASSERT_TRUE(step(*r.ranks, one_ends));
      EXPECT_EQ(pages_in_use(*r.ranks, r.config.pages), 2 * r.ranks->ranks());
      EXPECT_FALSE(scratch_zero(*r.ranks));

      step_plan other_ends;
      other_ends.wipes = {1, 3};
      other_ends.wipe_scratch = true;
      ASSERT_TRUE(step(*r.ranks, other_ends));
      EXPECT_EQ(pages_in_use(*r.ranks, r.config.pages), 0u);
      EXPECT_TRUE(scratch_zero(*r.ranks));
    }
}

/// Products leave numbers deep in the stack of the thread that computes; how many is its row's.
TEST(Shard, WipesTheStackOfWhoComputed) {
  running r = start({.ranks = {1, 1}}, {dtype::q8_0, dtype::q8_0, dtype::q8_0});
  auto steps = plan_all(r.prompts, r.how);
  ask_for_last_rows(steps[0]->plan);
  constexpr size_t callers = size_t{16} << 10;
  own_stack stack;
  stack.run([&] {
    step_data data = steps[0]->data(53);
    data.caller_waits = true;
    EXPECT_TRUE(step(*r.ranks, steps[0]->plan, data));
  });
  EXPECT_GT(stack.left_below(callers), 4096u) << "the control: it must lie there first";
  step_plan end;
  end.wipes = {0, 1, 2, 3, 4};
  end.wipe_scratch = true;
  stack.run([&] { EXPECT_TRUE(step(*r.ranks, end, {.caller_waits = true})); });
  // What wiping itself needs lies below all: addresses.
  EXPECT_LT(stack.left_below(callers), 256u);
}

TEST(Shard, WipesScratchOfALongStepAlsoAfterAShortOne) {
  running r = start({.ranks = {2, 2}, .threads = 2});
  auto steps = plan_all(r.prompts, r.how);
  ASSERT_TRUE(step(*r.ranks, steps[0]->plan, steps[0]->data(53)));
  planned last;
  prompt longer = random_prompt(12, 53, 1);
  add_entry(last, {longer, longer}, 0, 11, 1, 4);
  ASSERT_TRUE(step(*r.ranks, last.plan, last.data(53)));
  step_plan end;
  end.wipes = {0, 1, 2, 3, 4};
  end.wipe_scratch = true;
  ASSERT_TRUE(step(*r.ranks, end));
  EXPECT_TRUE(scratch_zero(*r.ranks));
  EXPECT_EQ(pages_in_use(*r.ranks, r.config.pages), 0u);
}

/// Steps with wipes while others are under way through the pipeline: same bits as without.
TEST(Shard, WipesScratchBetweenStepsOfAPipelineWithoutHarm) {
  random_model m(small_shape(), {});
  std::vector<prompt> prompts{random_prompt(40, 53, 1), random_prompt(40, 53, 2)};
  manner how{.ranks = {2, 2}, .chunk = 3, .wipes = true};
  auto want = run(m.weights, prompts, {});
  auto g = grid::start(m.weights, config_for(prompts, how));
  ASSERT_TRUE(g);
  EXPECT_TRUE(run_on(**g, (*g)->depth(), 53, prompts, how) == want);
}

/// Two sequences share the first page and part with a copy of the second.
TEST(Shard, ContinuesFromACopiedPage) {
  random_model m(small_shape(), {});
  prompt trunk = random_prompt(6, 53, 1), one = trunk, two = trunk;
  one.insert(one.end(), {3, 4, 5, 6});
  two.insert(two.end(), {7, 8, 9, 10});
  auto want = run(m.weights, {one, two}, {});
  manner how{.ranks = {2, 2}, .page_tokens = 4};
  auto g = grid::start(m.weights, config_for({one, two}, how));
  ASSERT_TRUE(g);

  planned shared, apart;
  add_entry(shared, {one}, 0, 0, 6, 4);  // pages 0 and 1
  ASSERT_TRUE(step(**g, shared.plan, shared.data(53)));
  add_entry(apart, {one}, 0, 6, 4, 4);
  add_entry(apart, {one, two}, 1, 6, 4, 4);
  apart.plan.pages = {0, 1, 2, 0, 3, 4};
  apart.plan.copies = {{1, 3, 2}};
  ASSERT_TRUE(step(**g, apart.plan, apart.data(53)));
  for (uint32_t i = 0; i < 4; ++i) {
    auto row = apart.logits.begin() + i * 53, other = apart.logits.begin() + (4 + i) * 53;
    EXPECT_TRUE(std::equal(row, row + 53, want[0][6 + i].begin()));
    EXPECT_TRUE(std::equal(other, other + 53, want[1][6 + i].begin()));
  }
  step_plan end;
  end.wipes = {0, 1, 2, 3, 4};
  ASSERT_TRUE(step(**g, end));
  EXPECT_EQ(pages_in_use(**g, 5), 0u);
}

TEST(Shard, TakesAsManyBytesForPagesAsItSays) {
  running r = start({.ranks = {2, 2}});
  size_t bytes =
      kv_page_bytes(small_shape(), part_for(small_shape(), {2, 2}, 1, 1), kv_type::f32, 4);
  EXPECT_EQ(bytes, 1u /* layer */ * 1 /* head */ * 2 * 4 /* tokens */ * 32 * 4);
  EXPECT_EQ(r.ranks->rank(3).page_bytes(), bytes);
  size_t held = 0;
  for (bytes_view piece : r.ranks->rank(3).page(0)) held += piece.size();
  EXPECT_EQ(held, bytes);
}

TEST(Shard, SumsTheTimesOfItsOperationsOnlyWhenAskedTo) {
  for (bool timed : {false, true}) {
    random_model m(small_shape(), {});
    std::vector<prompt> prompts{random_prompt(11, 53, 1)};
    grid_config config = config_for(prompts, {.ranks = {2, 1}});
    config.timed = timed;
    auto g = grid::start(m.weights, config);
    ASSERT_TRUE(g);
    auto steps = plan_all(prompts, {});
    ASSERT_TRUE(step(**g, steps[0]->plan, steps[0]->data(53)));
    const step_times& t = (*g)->rank(0).times();
    EXPECT_EQ(t.steps, 1u);
    for (uint64_t part :
         {t.embed, t.norm, t.qkv, t.rope, t.attention, t.o, t.gate_up, t.down, t.head, t.comm})
      EXPECT_EQ(part != 0, timed);
  }
}

TEST(Grid, SaysWhichPlanItRefusedAndIsDead) {
  for (cut c : {cut{1, 1}, cut{2, 2}}) {
    running r = start({.ranks = c});
    auto steps = plan_all(r.prompts, r.how);
    steps[0]->ids[5] = 53;
    steps[0]->plan.id = 77;
    auto done = step(*r.ranks, steps[0]->plan, steps[0]->data(53));
    ASSERT_FALSE(done);
    EXPECT_EQ(done.why().text, "step 77: a token id is not in the vocabulary of 53");
    EXPECT_FALSE(r.ranks->wait_oldest());
  }
}

TEST(Grid, WakesItsDriverWhenAborted) {
  running r = start({.ranks = {2, 2}});
  auto steps = plan_all(r.prompts, r.how);
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    r.ranks->abort();
  });
  result<void> done;
  while (done) {
    r.ranks->submit(steps[0]->plan, steps[0]->data(53));
    done = r.ranks->wait_oldest();
  }
  other.join();
  EXPECT_EQ(done.why().text, "grid: aborted");
}

TEST(Grid, EndsWithStepsInFlight) {
  for (const manner& how : ways) {
    running r = start(how);
    auto steps = plan_all(r.prompts, {.page_tokens = 4, .chunk = 6});
    for (uint32_t i = 0; i < std::min<uint32_t>(r.ranks->depth(), 2); ++i)
      r.ranks->submit(steps[i]->plan, steps[i]->data(53));
    r.ranks.reset();
  }
}

class PlanCheck : public ::testing::Test {
 protected:
  PlanCheck() {
    config.part = part_for(small_shape(), {1, 1}, 0, 0);
    config.page_tokens = 4, config.pages = 8, config.step_tokens = 16, config.logit_rows = 4;
    plan.entries = {{.position = 2, .tokens = 3, .page_count = 2, .logit_rows = 1}};
    plan.pages = {0, 7};
    plan.tokens = 3, plan.logit_rows = 1;
  }
  std::string why() {
    auto fits = check_plan(plan, {ids, logits}, config, 53);
    return fits ? "" : fits.why().text;
  }

  shard_config config;
  step_plan plan;
  uint32_t ids[16] = {};
  float logits[4 * 53] = {};
};

TEST_F(PlanCheck, TakesAPlanThatFits) { EXPECT_EQ(why(), ""); }

TEST_F(PlanCheck, RefusesMoreTokensOrRowsThanThereIsRoomFor) {
  plan.tokens = 17;
  EXPECT_EQ(why(), "step 0: 17 tokens and 1 logit rows; the shard takes 16 and 4");
  plan.tokens = 3, plan.logit_rows = 5;
  EXPECT_NE(why(), "");
}

TEST_F(PlanCheck, RefusesPagesThatAreNotThere) {
  plan.pages[1] = 8;
  EXPECT_EQ(why(), "step 0: a page is not one of the shard's 8");
  plan.pages[1] = 7, plan.wipes = {8};
  EXPECT_NE(why(), "");
  plan.wipes = {}, plan.copies = {{0, 8, 1}};
  EXPECT_NE(why(), "");
  plan.copies = {{0, 1, 5}};
  EXPECT_NE(why(), "");
}

TEST_F(PlanCheck, RefusesATableThatDoesNotHoldTheTokens) {
  plan.entries[0].position = 6;
  EXPECT_EQ(why(), "step 0: 2 pages of 4 tokens do not hold tokens 6 to 9");
  plan.entries[0].position = UINT32_MAX;
  EXPECT_NE(why(), "");
  plan.entries[0].position = 2, plan.entries[0].first_page = UINT32_MAX;
  EXPECT_EQ(why(), "step 0: an entry's page table lies outside the plan's");
}

TEST_F(PlanCheck, RefusesEntriesThatLeaveRowsUnfilled) {
  plan.logit_rows = 2;
  EXPECT_NE(why(), "");
  plan.logit_rows = 1, plan.entries[0].first_token = 1;
  EXPECT_EQ(why(), "step 0: entries do not lie back to back");
  plan.entries[0].first_token = 0, plan.entries[0].logit_rows = 4;
  EXPECT_EQ(why(), "step 0: an entry of 3 tokens asks for 4 logit rows");
}

}  // namespace
}  // namespace lethe::testing

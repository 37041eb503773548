#include "parallel/grid.hpp"

#include <gtest/gtest.h>

#include "tests/unit/parallel_grid_run.hpp"
#include "tests/unit/parallel_oracle.hpp"

namespace lethe::testing {
namespace {

model_shape rich_shape() { return testing::rich_shape(9); }
std::vector<prompt> some_prompts(uint32_t vocab) { return testing::some_prompts(vocab, 41); }

double largest_error(const logit_rows& got, const std::vector<numbers>& want) {
  double error = 0, largest = 0;
  for (size_t t = 0; t < want.size(); ++t)
    for (size_t i = 0; i < want[t].size(); ++i) {
      error = std::max(error, std::abs(double(got[t][i]) - want[t][i]));
      largest = std::max(largest, std::abs(want[t][i]));
    }
  return error / largest;
}

void expect_near_oracle(const random_model& m, double bound, manner how = {}) {
  auto prompts = some_prompts(m.weights.shape.vocab);
  auto got = run(m.weights, prompts, how);
  for (size_t p = 0; p < prompts.size(); ++p) {
    ASSERT_EQ(got[p].size(), prompts[p].size());
    EXPECT_LT(largest_error(got[p], oracle(m).logits(prompts[p])), bound) << "prompt " << p;
  }
}

/// Bit for bit the logits of one rank with one thread, whole prompts in one step.
void expect_same_bits(const random_model& m, const std::vector<manner>& ways) {
  auto prompts = some_prompts(m.weights.shape.vocab);
  auto want = run(m.weights, prompts, {});
  for (const manner& how : ways)
    EXPECT_TRUE(run(m.weights, prompts, how) == want)
        << "tensor " << how.ranks.tensor << " pipeline " << how.ranks.pipeline << " threads "
        << how.threads << " page " << how.page_tokens << " chunk " << how.chunk;
}

std::vector<manner> cuts(std::initializer_list<uint32_t> tensors,
                         std::initializer_list<uint32_t> pipelines) {
  std::vector<manner> ways;
  uint32_t n = 0;
  for (uint32_t t : tensors)
    for (uint32_t p : pipelines)
      ways.push_back({.ranks = {t, p}, .threads = 1 + n++ % 2, .chunk = 7});
  return ways;
}

TEST(Grid, FollowsTheOracleInFloat) { expect_near_oracle({small_shape(3, 96), {}}, 2e-6); }

TEST(Grid, FollowsTheOracleWithBiasesNormsWindowsAndPartialRotation) {
  expect_near_oracle({rich_shape(), {}}, 2e-6);
}

TEST(Grid, FollowsTheOracleInBf16) {
  expect_near_oracle({rich_shape(), {dtype::bf16, dtype::bf16, dtype::bf16}}, 2e-6);
}

TEST(Grid, FollowsTheOracleInQ8UpToTheRoundingOfActivations) {
  expect_near_oracle({small_shape(3, 96), {dtype::q8_0, dtype::q8_0, dtype::q8_0}}, 3e-2);
}

TEST(Grid, FollowsTheOracleWithOneKeyHead) {
  model_shape s = small_shape(3, 96);
  s.kv_heads = 1;
  expect_near_oracle({s, {}}, 2e-6);
}

TEST(Grid, GivesTheSameBitsForEveryCutInFloat) {
  expect_same_bits({rich_shape(), {}}, cuts({1, 2, 4, 8}, {1, 2, 3}));
}

// o is cut along K at 2 and 4 ranks; down has 3 blocks and is gathered instead.
TEST(Grid, GivesTheSameBitsForEveryCutInQ8) {
  random_model m({small_shape(3, 96), {dtype::q8_0, dtype::q8_0, dtype::q8_0}});
  expect_same_bits(m, cuts({1, 2, 4, 8}, {1, 2, 3}));
}

TEST(Grid, GivesTheSameBitsWhereDownIsCutAlongK) {
  model_shape s = rich_shape();
  s.ffn = 256;
  random_model m(s, {dtype::bf16, dtype::q8_0, dtype::f32});
  expect_same_bits(m, cuts({2, 4, 8}, {1, 2}));
}

TEST(Grid, GivesTheSameBitsForCutsThatAreNoPowerOfTwo) {
  model_shape s = rich_shape();
  s.heads = 6, s.kv_heads = 2;
  expect_same_bits({s, {}}, cuts({2, 3, 6}, {1, 2}));
  expect_same_bits({s, {dtype::q8_0, dtype::q8_0, dtype::q8_0}}, cuts({3, 6}, {1}));
  s.heads = 35, s.kv_heads = 7, s.head_dim = 4, s.rope.rotary = 4;
  expect_same_bits({s, {}}, cuts({5, 7}, {1}));
}

// 3 ranks of 4 heads, key heads of 3: a rank's heads look at two of them, unevenly.
TEST(Grid, GivesTheSameBitsWhereRanksShareKeyHeadsUnevenly) {
  model_shape s = rich_shape();
  s.heads = 12, s.kv_heads = 4, s.head_dim = 8;
  expect_same_bits({s, {}}, cuts({3, 6, 12}, {1}));
}

TEST(Grid, GivesTheSameBitsWithOneKeyHeadForAllRanks) {
  model_shape s = rich_shape();
  s.kv_heads = 1;
  expect_same_bits({s, {}}, cuts({2, 4, 8}, {1}));
}

TEST(Grid, GivesTheSameBitsForEveryPageChunkAndThreadCount) {
  std::vector<manner> ways;
  for (uint32_t page : {1, 16, 64})
    for (uint32_t chunk : {1, 7, 1000})
      for (uint32_t threads : {1, 2, 3})
        ways.push_back({.threads = threads, .page_tokens = page, .chunk = chunk});
  expect_same_bits({rich_shape(), {}}, ways);
  expect_same_bits({small_shape(3, 96), {dtype::q8_0, dtype::q8_0, dtype::bf16}}, ways);
}

TEST(Grid, GivesTheSameBitsAloneAndInCompany) {
  random_model m({rich_shape(), {}});
  auto prompts = some_prompts(m.weights.shape.vocab);
  auto together = run(m.weights, prompts, {.chunk = 5});
  for (size_t p = 0; p < prompts.size(); ++p)
    EXPECT_TRUE(run(m.weights, {prompts[p]}, {})[0] == together[p]) << "prompt " << p;
}

TEST(Grid, GivesTheSameBitsForEveryCutWhateverTheKeysAreStoredAs) {
  random_model m({rich_shape(), {}});
  auto prompts = some_prompts(m.weights.shape.vocab);
  for (kv_type kv : {kv_type::bf16, kv_type::int8}) {
    auto want = run(m.weights, prompts, {.kv = kv});
    EXPECT_TRUE(
        run(m.weights, prompts, {.ranks = {2, 2}, .page_tokens = 1, .chunk = 3, .kv = kv}) == want);
    EXPECT_LT(largest_error(want[0], oracle(m).logits(prompts[0])), 0.05);
  }
}

/// Only the rows that a plan asks for, as a prefill does.
TEST(Grid, GivesTheLastRowsAloneAsTheyAreAmongAll) {
  random_model m({rich_shape(), {}});
  uint32_t vocab = m.weights.shape.vocab;
  auto prompts = some_prompts(vocab);
  auto want = run(m.weights, prompts, {});
  for (cut c : {cut{1, 1}, cut{2, 1}, cut{3 - 1, 2}}) {
    manner how{.ranks = c, .threads = 2};
    auto g = grid::start(m.weights, config_for(prompts, how));
    ASSERT_TRUE(g) << g.why().text;
    auto steps = plan_all(prompts, how);
    planned& step = *steps[0];
    uint32_t asked[] = {3, 0, 1};
    step.plan.logit_rows = 0;
    for (size_t p = 0; p < 3; ++p) {
      plan_entry& e = step.plan.entries[p];
      e.logit_rows = asked[p];
      e.first_logit_row = step.plan.logit_rows;
      step.plan.logit_rows += asked[p];
    }
    (*g)->submit(step.plan, step.data(vocab));
    ASSERT_TRUE((*g)->wait_oldest());
    for (const plan_entry& e : step.plan.entries)
      for (uint32_t i = 0; i < e.logit_rows; ++i)
        EXPECT_TRUE(std::equal(step.logits.begin() + (e.first_logit_row + i) * vocab,
                               step.logits.begin() + (e.first_logit_row + i + 1) * vocab,
                               want[e.sequence][e.tokens - e.logit_rows + i].begin()));
  }
}

TEST(Grid, AStepOfAWaitingCallerIsTheSameAsAnyOther) {
  random_model m({small_shape(3, 96), {}});
  uint32_t vocab = small_shape(3, 96).vocab;
  auto prompts = some_prompts(vocab);
  manner chunks{.chunk = 4};
  auto want = run(m.weights, prompts, chunks);
  for (cut c : {cut{1, 1}, cut{2, 1}, cut{1, 2}})
    for (uint32_t every : {1u, 2u}) {  // all steps, or every other one
      manner how{.ranks = c, .threads = 2, .chunk = 4};
      auto g = grid::start(m.weights, config_for(prompts, how));
      ASSERT_TRUE(g) << g.why().text;
      auto steps = plan_all(prompts, how);
      ASSERT_GT(steps.size(), 2u);
      for (size_t i = 0; i < steps.size(); ++i) {
        step_data data = steps[i]->data(vocab);
        data.caller_waits = i % every == 0;
        (*g)->submit(steps[i]->plan, data);
        ASSERT_TRUE((*g)->wait_oldest());
        for (const plan_entry& e : steps[i]->plan.entries)
          for (uint32_t t = 0; t < e.tokens; ++t)
            EXPECT_TRUE(std::equal(want[e.sequence][e.position + t].begin(),
                                   want[e.sequence][e.position + t].end(),
                                   steps[i]->logits.begin() + (e.first_logit_row + t) * vocab));
      }
    }
}

TEST(Grid, AWaitingCallerHearsOfRefusalAndAbortion) {
  random_model m({small_shape(3, 96), {}});
  auto prompts = some_prompts(small_shape(3, 96).vocab);
  for (bool aborts : {false, true}) {
    auto g = grid::start(m.weights, config_for(prompts, {}));
    ASSERT_TRUE(g);
    auto steps = plan_all(prompts, {});
    step_data data = steps[0]->data(small_shape(3, 96).vocab);
    data.caller_waits = true;
    if (aborts) (*g)->abort();
    if (!aborts) steps[0]->ids[1] = small_shape(3, 96).vocab;
    (*g)->submit(steps[0]->plan, data);
    auto done = (*g)->wait_oldest();
    ASSERT_FALSE(done);
    EXPECT_NE(done.why().text.find(aborts ? "aborted" : "not in the vocabulary"), std::string::npos)
        << done.why().text;
  }
}

TEST(Grid, RefusesACutThatDoesNotFit) {
  random_model m({small_shape(3, 96), {}});
  auto g = grid::start(m.weights, {.ranks = {3, 1}, .row = &best_cpu_row(), .pages = 1});
  ASSERT_FALSE(g);
  EXPECT_EQ(g.why().text, "--tensor 3: the model has 8 heads; tensor must divide them: 1, 2, 4, 8");
}

}  // namespace
}  // namespace lethe::testing

#include <gtest/gtest.h>

#include "tests/unit/kernels_rows_here.hpp"
#include "tests/unit/parallel_grid_run.hpp"
#include "tests/unit/parallel_oracle.hpp"

// Whole models by the arithmetics that round, on cores: near the exact logits, and the same bits
// however they came to be computed.

namespace lethe::testing {
namespace {

/// An emulation beside what the processor has.
cpu_row completed(const cpu_row& emulated) {
  cpu_row r = *find_cpu_row("avx512");
  r.x_tile_rows = emulated.x_tile_rows;
  r.matmul = emulated.matmul;
  r.quantize = emulated.quantize;
  r.round = emulated.round;
  r.attend = emulated.attend;
  return r;
}

/// The processor's row, or its emulation; null: this machine has neither.
const cpu_row* row_for(rounding how) {
  const cpu_row& own = how == rounding::tensor ? amx_tensor : pairs_row();
  if (runs_here(own)) return &own;
  if (!emulates_here()) return nullptr;
  static const cpu_row tiles = completed(amx_tensor_emulated), pairs = completed(pairs_emulated);
  return how == rounding::tensor ? &tiles : &pairs;
}

/// Segments of whole units, some of them in ranks of a cut by eight, too.
model_shape wide_shape() {
  model_shape s = rich_shape(9);
  s.hidden = 256, s.head_dim = 32, s.ffn = 768, s.rope.rotary = 16;
  return s;
}

class TensorArithmetic : public ::testing::TestWithParam<rounding> {
 protected:
  void SetUp() override {
    if (row == nullptr) GTEST_SKIP() << "no AVX-512";
  }
  std::vector<logit_rows> run_as(const random_model& m, manner how) const {
    how.row = row;
    return run(m.weights, prompts, how);
  }
  const cpu_row* row = row_for(GetParam());
  std::vector<prompt> prompts = some_prompts(53, 41);
};
INSTANTIATE_TEST_SUITE_P(By, TensorArithmetic, ::testing::Values(rounding::tensor, rounding::pairs),
                         [](const auto& of) { return name_of(of.param); });

TEST_P(TensorArithmetic, IsNearTheExactLogits) {
  random_model m(wide_shape(), {dtype::bf16, dtype::bf16, dtype::bf16});
  auto exact = run(m.weights, prompts, {.kv = kv_type::bf16});
  auto got = run_as(m, {.kv = kv_type::bf16});
  double error = 0, largest = 0;
  for (size_t p = 0; p < got.size(); ++p)
    for (size_t t = 0; t < got[p].size(); ++t)
      for (size_t i = 0; i < got[p][t].size(); ++i) {
        error = std::max(error, std::abs(double(got[p][t][i]) - exact[p][t][i]));
        largest = std::max(largest, std::abs(double(exact[p][t][i])));
      }
  EXPECT_LT(error, 0x1p-5 * largest);
  EXPECT_GT(error, 0x1p-12 * largest) << "nothing was rounded";
}

/// Types that are rounded beside others of the same input.
TEST_P(TensorArithmetic, GivesTheSameBitsForEveryCutChunkPageAndThreadCount) {
  for (random_model::types stored : {random_model::types{dtype::bf16, dtype::bf16, dtype::bf16},
                                     {dtype::bf16, dtype::q8_0, dtype::f32},
                                     {dtype::f32, dtype::bf16, dtype::q8_0}}) {
    random_model m(wide_shape(), stored);
    auto want = run_as(m, {.kv = kv_type::bf16});
    for (manner how : {manner{.ranks = {2, 1}, .threads = 2, .chunk = 7},
                       {.ranks = {4, 2}},
                       {.ranks = {8, 1}, .page_tokens = 32, .chunk = 1},
                       {.threads = 3, .page_tokens = 1, .chunk = 5, .wipes = true},
                       {.ranks = {1, 3}, .page_tokens = 48, .chunk = 17}}) {
      how.kv = kv_type::bf16;
      EXPECT_TRUE(run_as(m, how) == want) << "tensor " << how.ranks.tensor << " pipeline "
                                          << how.ranks.pipeline << " chunk " << how.chunk;
    }
  }
}

/// Three ranks can't cut K: each gathers what it multiplies.
TEST_P(TensorArithmetic, GivesTheSameBitsWhereInputsAreGathered) {
  model_shape s = wide_shape();
  s.heads = 6, s.kv_heads = 2, s.head_dim = 128;
  random_model m(s, {dtype::bf16, dtype::bf16, dtype::bf16});
  auto want = run_as(m, {.kv = kv_type::bf16});
  EXPECT_TRUE(run_as(m, {.ranks = {3, 1}, .chunk = 7, .kv = kv_type::bf16}) == want);
}

TEST_P(TensorArithmetic, GivesTheSameBitsAloneAndInCompany) {
  random_model m(wide_shape(), {dtype::bf16, dtype::bf16, dtype::bf16});
  auto together = run_as(m, {.chunk = 5, .kv = kv_type::bf16});
  for (size_t p = 0; p < prompts.size(); ++p)
    EXPECT_TRUE(run(m.weights, {prompts[p]}, {.kv = kv_type::bf16, .row = row})[0] == together[p])
        << "prompt " << p;
}

/// A Q8_0 model with f32 keys has nothing that is rounded.
TEST_P(TensorArithmetic, LeavesTheRestExact) {
  random_model m(wide_shape(), {dtype::q8_0, dtype::q8_0, dtype::f32});
  EXPECT_TRUE(run_as(m, {}) == run(m.weights, prompts, {}));
}

}  // namespace
}  // namespace lethe::testing

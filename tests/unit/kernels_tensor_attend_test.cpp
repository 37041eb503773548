#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/cpu/amx_emulated.hpp"
#include "tests/unit/kernels_attend_definition.hpp"

// Attention of the arithmetics that round, on cores.

namespace lethe {
namespace {

class TensorAttend : public testing::TestWithParam<rounding> {
 protected:
  void SetUp() override {
    if (rows.empty()) GTEST_SKIP() << "no AVX-512, which emulations are made of";
  }
  std::vector<float> answer_of(const attention_case& c, const attention_input& in) const;
  const std::vector<const cpu_row*> rows = rounding_rows_here(GetParam());
};
INSTANTIATE_TEST_SUITE_P(By, TensorAttend, testing::Values(rounding::tensor, rounding::pairs),
                         [](const auto& of) { return name_of(of.param); });

/// One row's answer for a case, which all others have to give.
std::vector<float> TensorAttend::answer_of(const attention_case& c,
                                           const attention_input& in) const {
  std::vector<float> first = run_case(*rows[0], c, in);
  for (size_t i = 1; i < rows.size(); i++)
    EXPECT_TRUE(same_bits(run_case(*rows[i], c, in), first))
        << rows[i]->name << " and " << rows[0]->name << ", head size " << c.head_dim;
  return first;
}

/// Values have deviation 1. Where a score is 30 its rounded query is off by a sixteenth of it.
TEST_P(TensorAttend, IsSoftmaxAttentionForEveryHeadSize) {
  for (uint32_t head_dim : {1u, 7u, 16u, 32u, 48u, 64u, 80u, 96u, 100u, 128u, 256u, 512u}) {
    for (uint32_t heads : {2u, 16u}) {
      attention_case c{.tokens = 150, .heads = heads, .head_dim = head_dim, .type = kv_type::bf16};
      c.page_tokens = 32, c.chunk = heads == 2 ? 3 : 50;
      attention_input in = input_of(c, head_dim);
      std::vector<double> want = expected_of(c, in);
      std::vector<float> got = answer_of(c, in);
      double worst = 0;
      for (size_t i = 0; i < got.size(); i++) worst = std::max(worst, std::abs(got[i] - want[i]));
      EXPECT_LE(worst, 0.08) << head_dim;
      EXPECT_GT(worst, 1e-4) << "nothing was rounded";
    }
  }
}

TEST_P(TensorAttend, IsWhatItsDefinitionSays) {
  for (uint32_t head_dim : {1u, 7u, 16u, 24u, 48u, 64u, 80u, 128u}) {
    for (uint32_t window : {0u, 5u, 100u}) {
      attention_case c{.tokens = 200, .heads = 4, .head_dim = head_dim, .window = window};
      c.type = kv_type::bf16, c.page_tokens = 32, c.chunk = window == 5 ? 1 : 90;
      attention_input in = input_of(c, head_dim + window);
      expect_definition(GetParam(), c, in, answer_of(c, in),
                        {0, 1, 4, 31, 63, 64, 90, 127, 128, 150, 199});
      attention_input rising = rising_input_of(c);
      expect_definition(GetParam(), c, rising, answer_of(c, rising), {63, 64, 128, 199});
    }
  }
}

TEST_P(TensorAttend, IsWhatItsDefinitionSaysOfSeveralSpans) {
  for (uint32_t window : {0u, 1100u}) {
    attention_case c{.tokens = 2100, .heads = 2, .head_dim = 16, .window = window};
    c.type = kv_type::bf16, c.page_tokens = 32, c.chunk = 500, c.block = 32;
    attention_input in = input_of(c, window);
    std::vector<float> whole = answer_of(c, in);
    expect_definition(GetParam(), c, in, whole, {1023, 1024, 1025, 1100, 2047, 2048, 2099});
    c.spans_apart = true;
    EXPECT_TRUE(same_bits(answer_of(c, in), whole)) << window;
    c.chunk = 1;
    EXPECT_TRUE(same_bits(answer_of(c, in), whole)) << window;
  }
}

struct split {
  uint32_t page_tokens, chunk, block, step_heads;
};

/// By tiles up to eight queries go vector by vector where pages and heads hold sixteens.
TEST_P(TensorAttend, DoesNotDependOnPagesChunksBlocksOrHeadsTogether) {
  for (uint32_t head_dim : {16u, 24u, 64u, 80u, 128u}) {
    for (uint32_t window : {0u, 5u, 100u}) {
      attention_case c{.tokens = 200, .heads = 4, .head_dim = head_dim, .window = window};
      c.type = kv_type::bf16;
      attention_input in = input_of(c);
      std::vector<float> whole = answer_of(c, in);
      for (float x : whole) ASSERT_TRUE(std::isfinite(x));
      for (const split& s : {split{1, 7, 0, 0},
                             {3, 64, 0, 0},
                             {16, 1, 0, 0},
                             {16, 0, 5, 0},
                             {16, 64, 16, 2},
                             {32, 2, 0, 0},
                             {48, 1, 0, 1},
                             {48, 100, 3, 3},
                             {61, 100, 1, 1},
                             {64, 0, 32, 0}}) {
        c.page_tokens = s.page_tokens, c.chunk = s.chunk, c.block = s.block;
        c.step_heads = s.step_heads;
        EXPECT_TRUE(same_bits(answer_of(c, in), whole))
            << "pages of " << s.page_tokens << ", chunks of " << s.chunk << ", blocks of "
            << s.block << ", heads by " << s.step_heads << ", window " << window << ", head size "
            << head_dim;
      }
    }
  }
}

TEST_P(TensorAttend, DoesNotDependOnPagesFarFromTheBeginning) {
  for (uint32_t window : {0u, 2100u}) {
    attention_case c{.tokens = 2240, .heads = 4, .window = window, .type = kv_type::bf16};
    c.block = 32;
    attention_input in = input_of(c);
    std::vector<float> whole = answer_of(c, in);
    c.page_tokens = 32, c.chunk = 1;
    EXPECT_TRUE(same_bits(answer_of(c, in), whole)) << window;
  }
}

/// Several tiles of queries, and one, with each kind of tile of keys.
TEST(TensorAttendByTiles, IsInTilesWhereQueriesAreMany) {
  if (!emulates_here()) GTEST_SKIP() << "this machine can't emulate tiles";
  for (uint32_t tokens : {2u, 3u}) {
    attention_case c{.tokens = tokens, .heads = 4, .type = kv_type::bf16};
    size_t before = products_in_tiles;
    run_case(amx_tensor_emulated, c, input_of(c));
    // Of 16 queries: two halves of numbers by four of keys, four of numbers by two halves of keys.
    EXPECT_EQ(products_in_tiles - before, tokens == 2 ? 0u : 2u * 4 + 4 * 2);
  }
}

TEST_P(TensorAttend, LeavesOtherKeysExact) {
  for (kv_type type : {kv_type::f32, kv_type::int8}) {
    attention_case c{.tokens = 130, .heads = 4, .type = type, .block = 32};
    attention_input in = input_of(c);
    EXPECT_TRUE(same_bits(answer_of(c, in), run_case(best_cpu_row(), c, in))) << int(type);
  }
}

TEST_P(TensorAttend, IsAnotherArithmetic) {
  attention_case c{.tokens = 60, .heads = 4, .type = kv_type::bf16};
  attention_input in = input_of(c);
  EXPECT_FALSE(same_bits(answer_of(c, in), run_case(best_cpu_row(), c, in)));
}

/// What a query has summed becomes denormal, all but, as a later tile has a far greater score.
TEST_P(TensorAttend, HoldsSumsAtTheEndOfTheirRange) {
  attention_case c{.tokens = 140, .heads = 1, .head_dim = 16, .type = kv_type::bf16};
  attention_input in = input_of(c);
  std::ranges::fill(in.q, 0.0f), std::ranges::fill(in.k, 0.0f);
  for (uint32_t t = 0; t < c.tokens; t++) {
    in.q[t * 16] = 4.0f;
    in.v[t * 16] = 0x1.fep-1f;
  }
  for (float score : {80.0f, 84.0f, 86.0f, 87.0f, 88.0f, 90.0f, 100.0f}) {
    in.k[100 * 16] = score;  // times four, times a quarter
    for (uint32_t d = 0; d < 16; d++) in.v[100 * 16 + d] = 0;
    c.chunk = 0;
    std::vector<float> whole = answer_of(c, in);
    expect_definition(GetParam(), c, in, whole, {99, 100, 127, 128, 139});
    c.chunk = 1;
    EXPECT_TRUE(same_bits(answer_of(c, in), whole)) << score;
  }
}

/// What is divided is no denormal number, but what comes of it may be.
TEST_P(TensorAttend, DividesIntoDenormalsWhoeverSumsSpans) {
  attention_case c{.tokens = 1100, .heads = 1, .head_dim = 16, .type = kv_type::bf16};
  c.page_tokens = 32, c.chunk = 300;
  attention_input in = input_of(c);
  std::ranges::fill(in.k, 0.0f), std::ranges::fill(in.v, 0.0f);
  for (uint32_t d = 0; d < 16; d++) in.v[10 * 16 + d] = (d % 2 ? 1.0f : -1.0f) * 0x1p-125f;
  std::vector<float> whole = answer_of(c, in);
  EXPECT_EQ(whole[1099 * 16 + 1], 0x1p-125f / 1100);
  c.spans_apart = true;
  EXPECT_TRUE(same_bits(answer_of(c, in), whole));
}

/// A span's sums become so as they join one with a far greater score.
TEST_P(TensorAttend, HoldsSpansAtTheEndOfTheirRange) {
  attention_case c{.tokens = 1100, .heads = 1, .head_dim = 16, .type = kv_type::bf16};
  c.page_tokens = 32, c.chunk = 300;
  attention_input in = input_of(c);
  std::ranges::fill(in.q, 0.0f), std::ranges::fill(in.k, 0.0f);
  for (uint32_t t = 0; t < c.tokens; t++) in.q[t * 16] = 4.0f;
  for (float score : {80.0f, 84.0f, 86.0f, 87.0f, 88.0f, 90.0f}) {
    in.k[1050 * 16] = score;
    for (uint32_t d = 0; d < 16; d++) in.v[1050 * 16 + d] = 0;
    c.spans_apart = false;
    std::vector<float> whole = answer_of(c, in);
    expect_definition(GetParam(), c, in, whole, {1049, 1050, 1099});
    c.spans_apart = true;
    EXPECT_TRUE(same_bits(answer_of(c, in), whole)) << score;
  }
}

/// A value that has left the window does not reach who is alone, odd places and even ones.
TEST_P(TensorAttend, IsNotReachedByWhatLeftTheWindow) {
  for (uint32_t gone : {10u, 11u}) {
    attention_case c{.tokens = 40, .heads = 1, .head_dim = 16, .window = 5, .type = kv_type::bf16};
    c.page_tokens = 16, c.chunk = 1;
    attention_input in = input_of(c);
    std::fill_n(in.v.begin() + gone * 16, 16, INFINITY);
    for (const cpu_row* row : rows) {
      std::vector<float> out = run_case(*row, c, in);
      EXPECT_FALSE(std::isfinite(out[gone * 16])) << row->name;
      for (uint32_t i = (gone + c.window) * 16; i < out.size(); i++)
        ASSERT_TRUE(std::isfinite(out[i])) << row->name << " at " << i / 16;
    }
  }
}

/// Keys that are not there, or not seen, may be anything: pages are of NaN at first.
TEST_P(TensorAttend, HoldsScoresFarApart) {
  for (uint32_t peak : {0u, 63u, 64u, 130u, 199u}) {
    attention_case c{.tokens = 200, .heads = 1, .head_dim = 16, .type = kv_type::bf16};
    attention_input in = input_of(c);
    for (uint32_t d = 0; d < 16; d++) in.k[peak * 16 + d] = 3000.0f * in.q[199 * 16 + d];
    std::vector<float> out = answer_of(c, in);
    for (uint32_t d = 0; d < 16; d++)
      EXPECT_NEAR(out[199 * 16 + d], in.v[peak * 16 + d], 0x1p-7) << peak;
    c.chunk = 1;
    EXPECT_TRUE(same_bits(answer_of(c, in), out)) << peak;
  }
}

}  // namespace
}  // namespace lethe

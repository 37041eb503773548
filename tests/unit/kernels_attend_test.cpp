#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "kernels/cpu/amx_emulated.hpp"
#include "tests/unit/kernels_attend_definition.hpp"

namespace lethe {
namespace {

const cpu_row& reference_row() { return *find_cpu_row("reference"); }

/// The greatest |a - b| over all outputs; NaN where an output is not finite.
double error_of(const std::vector<float>& a, const std::vector<double>& b) {
  double worst = 0;
  for (size_t i = 0; i < a.size(); i++) {
    if (!std::isfinite(a[i])) return std::nan("");
    worst = std::max(worst, std::abs(a[i] - b[i]));
  }
  return worst;
}

/// Of values with deviation 1.
double bound_of(kv_type type) {
  switch (type) {
    case kv_type::f32:
      return 1e-5;
    case kv_type::bf16:
      return 0.04;
    case kv_type::int8:
      return 0.08;
  }
  return 0;
}

TEST(Attend, IsSoftmaxAttentionForEveryHeadSize) {
  for (kv_type type : {kv_type::f32, kv_type::bf16, kv_type::int8}) {
    for (uint32_t head_dim : {1u, 7u, 8u, 16u, 64u, 80u, 96u, 100u, 128u, 160u, 256u, 512u}) {
      attention_case c{.tokens = 150, .heads = 2, .head_dim = head_dim, .type = type};
      attention_input in = input_of(c, head_dim);
      double error = error_of(run_case(best_cpu_row(), c, in), expected_of(c, in));
      EXPECT_LE(error, bound_of(type)) << head_dim << " type " << int(type);
      EXPECT_FALSE(std::isnan(error));
    }
  }
}

TEST(Attend, SeesOnlyItsWindow) {
  for (uint32_t window : {1u, 5u, 64u, 100u, 1000u}) {
    attention_case c{.tokens = 300, .heads = 3, .head_dim = 32, .window = window, .chunk = 50};
    attention_input in = input_of(c);
    double error = error_of(run_case(best_cpu_row(), c, in), expected_of(c, in));
    EXPECT_LE(error, bound_of(c.type)) << window;
    EXPECT_FALSE(std::isnan(error));
  }
}

TEST(Attend, IsExactAboutOneKey) {
  attention_case c{.tokens = 70, .heads = 1, .head_dim = 20, .window = 1};
  attention_input in = input_of(c);
  EXPECT_TRUE(same_bits(run_case(best_cpu_row(), c, in), in.v));
}

void expect_same_bits_on_rows(const attention_case& c) {
  attention_input in = input_of(c);
  std::vector<float> expected = run_case(reference_row(), c, in);
  for (const cpu_row* row : rows_here({&vnni_emulated, &amx_emulated})) {
    EXPECT_TRUE(same_bits(run_case(*row, c, in), expected))
        << row->name << ", head size " << c.head_dim << ", heads " << c.heads << ", type "
        << int(c.type);
  }
}

TEST(Attend, GivesTheSameBitsOnEveryRow) {
  for (kv_type type : {kv_type::f32, kv_type::bf16, kv_type::int8}) {
    for (uint32_t head_dim : {1u, 7u, 64u, 100u, 128u}) {
      expect_same_bits_on_rows({.tokens = 90, .heads = 2, .head_dim = head_dim, .type = type});
    }
    for (uint32_t heads : {1u, 3u, 7u, 8u}) {
      expect_same_bits_on_rows(
          {.tokens = 70, .heads = heads, .head_dim = 48, .window = 40, .type = type, .chunk = 9});
    }
  }
}

/// Whole tiles of queries go through registers of tiles where pages and heads fill those, and only
/// there: blocks of 16 tokens, chunks of 96, and a few tokens behind them that don't.
TEST(Attend, GivesTheSameBitsInTiles) {
  for (uint32_t head_dim : {32u, 64u, 80u, 100u, 128u, 192u, 256u}) {
    for (uint32_t page_tokens : {8u, 16u, 48u, 64u, 128u}) {
      for (uint32_t window : {0u, 40u, 100u}) {
        attention_case c{.tokens = 230, .heads = 2, .head_dim = head_dim, .window = window};
        c.type = kv_type::int8, c.page_tokens = page_tokens, c.block = 16;
        size_t before = products_in_tiles;
        expect_same_bits_on_rows(c);
        bool filled = head_dim % 64 == 0 && page_tokens % 16 == 0 && emulates_here();
        EXPECT_EQ(products_in_tiles > before, filled) << head_dim << ", pages of " << page_tokens;
        c.chunk = 96, c.block = 32;
        expect_same_bits_on_rows(c);
      }
    }
  }
}

/// Where keys and values lie is known of four tiles at a time: here are seven, of blocks that fill
/// tiles and of single tokens. Pages of 8 are copied.
TEST(Attend, GivesTheSameBitsOfMoreTilesThanHavePlaces) {
  for (kv_type type : {kv_type::f32, kv_type::bf16, kv_type::int8}) {
    for (uint32_t page_tokens : {8u, 16u, 64u}) {
      for (uint32_t window : {0u, 300u}) {
        attention_case c{.tokens = 430, .heads = 2, .head_dim = 64, .window = window};
        c.type = type, c.page_tokens = page_tokens, c.block = 32;
        expect_same_bits_on_rows(c);
        c.chunk = 1;
        expect_same_bits_on_rows(c);
      }
    }
  }
}

/// A key and a value of zeros, a value whose scale is tiny, numbers that are infinite or none; 64
/// queries that fill tiles.
TEST(Attend, GivesTheSameBitsOfSpecialNumbersInTiles) {
  attention_case c{.tokens = 64, .type = kv_type::int8, .block = 32};
  attention_input in = input_of(c);
  auto fill = [](std::vector<float>& rows, uint32_t t, float x) {
    std::fill_n(rows.begin() + t * 64, 64, x);
  };
  fill(in.k, 3, 0), fill(in.v, 5, 0), fill(in.v, 6, 1e-38f);
  in.v[40 * 64 + 1] = INFINITY, in.k[45 * 64] = INFINITY, in.q[50 * 64] = NAN;
  std::vector<float> expected = run_case(reference_row(), c, in);
  EXPECT_TRUE(std::isfinite(expected[39 * 64 + 1]));
  EXPECT_FALSE(std::isfinite(expected[40 * 64 + 1]));
  for (const cpu_row* row : rows_here({&vnni_emulated, &amx_emulated})) {
    std::vector<float> out = run_case(*row, c, in);
    for (size_t i = 0; i < out.size(); i++) {
      if (std::isnan(out[i]) && std::isnan(expected[i])) out[i] = expected[i];  // any NaN will do
    }
    EXPECT_TRUE(same_bits(out, expected)) << row->name;
  }
}

struct split {
  uint32_t page_tokens, chunk, block, step_heads;
};

/// Every page size with every chunk and with the chunk cut once more among threads.
std::vector<split> splits() {
  std::vector<split> all;
  for (uint32_t page_tokens : {1u, 3u, 16u, 64u}) {
    for (uint32_t chunk : {1u, 7u, 64u, 0u}) all.push_back({page_tokens, chunk, 0, 0});
  }
  all.push_back({16, 0, 5, 0});
  all.push_back({16, 64, 16, 2});
  all.push_back({61, 100, 1, 1});
  return all;
}

void expect_no_split_changes(attention_case c) {
  attention_input in = input_of(c);
  std::vector<float> whole = run_case(best_cpu_row(), c, in);
  for (float x : whole) ASSERT_TRUE(std::isfinite(x));
  for (const split& s : splits()) {
    c.page_tokens = s.page_tokens, c.chunk = s.chunk, c.block = s.block;
    c.step_heads = s.step_heads;
    EXPECT_TRUE(same_bits(run_case(best_cpu_row(), c, in), whole))
        << "pages of " << s.page_tokens << ", chunks of " << s.chunk << ", blocks of " << s.block
        << ", heads by " << s.step_heads << ", window " << c.window << ", type " << int(c.type);
  }
}

TEST(Attend, DoesNotDependOnPagesChunksOrBlocks) {
  for (kv_type type : {kv_type::f32, kv_type::bf16, kv_type::int8}) {
    expect_no_split_changes({.tokens = 200, .heads = 4, .head_dim = 64, .type = type});
    expect_no_split_changes({.tokens = 131, .heads = 1, .head_dim = 100, .type = type});
  }
}

TEST(Attend, DoesNotDependOnPagesChunksOrBlocksWithinAWindow) {
  for (uint32_t window : {1u, 5u, 64u, 100u}) {
    for (kv_type type : {kv_type::f32, kv_type::bf16, kv_type::int8}) {
      expect_no_split_changes(
          {.tokens = 230, .heads = 3, .head_dim = 24, .window = window, .type = type});
    }
  }
}

/// One token's seven, eight or nine queries are on both sides of what is multiplied in pages.
TEST(Attend, DoesNotDependOnHowManyQueriesComeTogether) {
  for (kv_type type : {kv_type::f32, kv_type::bf16, kv_type::int8}) {
    for (uint32_t heads : {1u, 4u, 7u, 8u, 9u}) {
      for (uint32_t window : {0u, 1u, 40u, 100u}) {
        attention_case c{.tokens = 150, .heads = heads, .head_dim = 48, .window = window};
        c.type = type;
        attention_input in = input_of(c);
        std::vector<float> whole = run_case(reference_row(), c, in);
        for (uint32_t page_tokens : {5u, 16u, 32u, 48u, 64u}) {
          c.page_tokens = page_tokens, c.chunk = 1;
          EXPECT_TRUE(same_bits(run_case(best_cpu_row(), c, in), whole))
              << heads << " heads, window " << window << ", pages of " << page_tokens << ", type "
              << int(type);
        }
      }
    }
  }
}

/// Beyond 2,048 keys in long pages the next tile is asked for otherwise.
TEST(Attend, DoesNotDependOnPagesFarFromTheBeginning) {
  for (kv_type type : {kv_type::f32, kv_type::bf16}) {
    for (uint32_t window : {0u, 2100u}) {
      attention_case c{.tokens = 2240, .heads = 4, .head_dim = 64, .window = window, .type = type};
      attention_input in = input_of(c);
      std::vector<float> whole = run_case(best_cpu_row(), c, in);
      for (uint32_t page_tokens : {16u, 32u, 48u}) {
        c.page_tokens = page_tokens, c.chunk = 1;
        EXPECT_TRUE(same_bits(run_case(best_cpu_row(), c, in), whole))
            << "window " << window << ", pages of " << page_tokens << ", type " << int(type);
      }
    }
  }
}

TEST(Attend, IsWhatItsDefinitionSays) {
  for (kv_type type : {kv_type::f32, kv_type::bf16}) {
    for (uint32_t head_dim : {1u, 16u, 40u, 64u}) {
      for (uint32_t window : {0u, 5u, 100u}) {
        attention_case c{.tokens = 200, .heads = 2, .head_dim = head_dim, .window = window};
        c.type = type, c.chunk = 90;
        attention_input in = input_of(c, head_dim + window);
        expect_definition({}, c, in, run_case(best_cpu_row(), c, in),
                          {0, 1, 4, 63, 64, 90, 128, 150, 199});
        attention_input rising = rising_input_of(c);
        expect_definition({}, c, rising, run_case(best_cpu_row(), c, rising), {63, 64, 128, 199});
      }
    }
  }
}

/// Several spans: what they are joined to, and that it makes no difference who sums which of them.
TEST(Attend, JoinsSpansInOrderWhoeverSumsThem) {
  for (kv_type type : {kv_type::f32, kv_type::bf16, kv_type::int8}) {
    for (uint32_t window : {0u, 1100u}) {
      attention_case c{.tokens = 2100, .heads = 2, .head_dim = 16, .window = window, .type = type};
      c.page_tokens = 32, c.chunk = 700, c.block = 32;
      attention_input in = rising_input_of(c, window);
      std::vector<float> whole = run_case(best_cpu_row(), c, in);
      if (type != kv_type::int8)
        expect_definition({}, c, in, whole, {1023, 1024, 1025, 1100, 2047, 2048, 2099});
      for (const cpu_row* row : rows_here({&vnni_emulated, &amx_emulated})) {
        c.spans_apart = false, c.chunk = 700, c.block = 32;
        EXPECT_TRUE(same_bits(run_case(*row, c, in), whole)) << row->name << ", " << window;
        c.spans_apart = true;
        EXPECT_TRUE(same_bits(run_case(*row, c, in), whole)) << row->name << ", " << window;
        c.chunk = c.block = 1;
        EXPECT_TRUE(same_bits(run_case(*row, c, in), whole)) << row->name << ", " << window;
      }
    }
  }
}

TEST(Attend, KeepsALaterTokensInfinityFromEarlierOnes) {
  for (kv_type type : {kv_type::f32, kv_type::bf16, kv_type::int8}) {
    attention_case c{.tokens = 40, .heads = 1, .head_dim = 16, .type = type};
    attention_input in = input_of(c), spoilt = in;
    spoilt.v[30 * 16] = INFINITY;
    std::vector<float> before = run_case(best_cpu_row(), c, in);
    std::vector<float> after = run_case(best_cpu_row(), c, spoilt);
    EXPECT_FALSE(std::isfinite(after[30 * 16])) << int(type);
    before.resize(30 * 16), after.resize(30 * 16);
    EXPECT_TRUE(same_bits(before, after)) << int(type);
  }
}

TEST(Attend, HoldsScoresFarApart) {
  // Greatest scores first, last and in between, differences far beyond what exp can show.
  for (uint32_t peak : {0u, 63u, 64u, 130u, 199u}) {
    attention_case c{.tokens = 200, .heads = 1, .head_dim = 16};
    attention_input in = input_of(c);
    for (uint32_t d = 0; d < 16; d++) in.k[peak * 16 + d] = 3000.0f * in.q[199 * 16 + d];
    std::vector<float> out = run_case(best_cpu_row(), c, in);
    for (uint32_t d = 0; d < 16; d++) EXPECT_EQ(out[199 * 16 + d], in.v[peak * 16 + d]) << peak;
  }
}

/// 63 keys of weight e^-6 beside one of 1: what is left of them when weights are rounded.
TEST(Attend, HoldsSmallWeightsBesideAGreatOne) {
  for (kv_type type : {kv_type::f32, kv_type::bf16, kv_type::int8}) {
    attention_case c{.tokens = 64, .heads = 1, .head_dim = 16, .type = type};
    attention_input in{std::vector<float>(64 * 16), std::vector<float>(64 * 16),
                       std::vector<float>(64 * 16, 1.0f)};
    in.q[63 * 16] = 4.0f, in.k[5 * 16] = 6.0f;
    std::fill_n(in.v.begin() + 5 * 16, 16, -1.0f);
    double others = 63 * std::exp(-6.0), want = (others - 1) / (others + 1);
    std::vector<float> out = run_case(best_cpu_row(), c, in);
    for (uint32_t d = 0; d < 16; d++) EXPECT_NEAR(out[63 * 16 + d], want, 1e-3) << int(type);
  }
}

void expect_no_write_beside_scratch(const cpu_row& row, const attention_case& c) {
  attention_input in = input_of(c);
  paged_cache cache(c);
  row.kv_store(cache.view(), 0, c.tokens, in.k.data(), in.v.data(), c.head_dim);
  size_t floats = attention_scratch_floats(c.tokens, c.heads, c.head_dim);
  std::vector<float> scratch(floats + 32, 77.0f), out(in.q.size());
  size_t at = 16, stride = c.heads * c.head_dim;
  while (reinterpret_cast<uintptr_t>(scratch.data() + at) % 64 != 0) at--;
  row.attend({cache.view(), in.q.data(), stride, out.data(), stride, 0, c.tokens, c.heads, 0, 0.1f,
              scratch.data() + at});
  for (size_t i = 0; i < scratch.size(); i++) {
    if (i < at || i >= at + floats) {
      EXPECT_EQ(scratch[i], 77.0f) << row.name << ", type " << int(c.type) << " at " << i;
    }
  }
}

TEST(Attend, StaysWithinItsScratch) {
  for (const cpu_row* row : with_rounding_rows(rows_here({&vnni_emulated, &amx_emulated}))) {
    for (kv_type type : {kv_type::f32, kv_type::bf16, kv_type::int8}) {
      expect_no_write_beside_scratch(*row,
                                     {.tokens = 65, .heads = 3, .head_dim = 37, .type = type});
      expect_no_write_beside_scratch(*row,
                                     {.tokens = 64, .heads = 1, .head_dim = 64, .type = type});
    }
  }
}

}  // namespace
}  // namespace lethe

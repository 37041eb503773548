#include <gtest/gtest.h>

#include <atomic>

#include "tests/unit/parallel_grid_run.hpp"
#include "tests/unit/parallel_random_model.hpp"

// Decodes whose keys several threads share, span by span.

namespace lethe::testing {
namespace {

std::atomic<uint32_t> joins;

/// The best row, counting.
const cpu_row& counting_row() {
  static const cpu_row row = [] {
    cpu_row r = best_cpu_row();
    r.join_spans = [](kv_type type, const float* spans, uint32_t count, uint32_t head_dim,
                      float* out) {
      joins.fetch_add(1);
      best_cpu_row().join_spans(type, spans, count, head_dim, out);
    };
    return r;
  }();
  return row;
}

/// Three key heads, of two heads each; a window behind which the second layer sees nothing.
model_shape long_shape() {
  model_shape s = small_shape(2, 96);
  s.heads = 6, s.kv_heads = 3, s.context_max = 4096;
  s.window = {0, 1100};
  return s;
}

/// The longest ends in a step of one token, behind which only some of a step is others'.
const std::vector<prompt> prompts{random_prompt(2150, 53, 1), random_prompt(40, 53, 2)};
constexpr uint32_t chunk = 307;
static_assert(2150 % chunk == 1);

uint32_t joins_of(const random_model& m, const manner& how, const std::vector<logit_rows>& want) {
  joins = 0;
  EXPECT_TRUE(run(m.weights, prompts, how) == want)
      << "tensor " << how.ranks.tensor << ", threads " << how.threads << ", chunk " << how.chunk
      << ", type " << int(how.kv);
  return joins;
}

TEST(Spans, OfALongDecodeAreSharedAndGiveTheSameBits) {
  random_model m(long_shape(), {});
  for (kv_type kv : {kv_type::f32, kv_type::bf16, kv_type::int8}) {
    auto want = run(m.weights, prompts, {.kv = kv});
    auto joined = [&](cut ranks, uint32_t threads) {
      manner how{.ranks = ranks, .threads = threads, .chunk = chunk, .kv = kv};
      how.row = &counting_row();
      return joins_of(m, how, want);
    };
    constexpr uint32_t heads_and_layers = 12;
    EXPECT_EQ(joined({1, 1}, 1), 0u) << "nobody to share with";
    EXPECT_EQ(joined({1, 1}, 2), heads_and_layers);
    EXPECT_EQ(joined({1, 1}, 3), 0u) << "a head for each";
    EXPECT_EQ(joined({1, 1}, 5), heads_and_layers);
    EXPECT_EQ(joined({3, 1}, 2), heads_and_layers) << "a head a rank, for two threads";
    EXPECT_EQ(joined({3, 2}, 1), 0u);
  }
}

TEST(Spans, AreSharedWhereThereIsRoomForThem) {
  random_model m(long_shape(), {});
  auto want = run(m.weights, prompts, {});
  manner how{.threads = 2, .chunk = chunk, .row = &counting_row()};
  constexpr size_t needed = 6 * 3 * span_floats(16) * sizeof(float);  // heads, spans
  for (size_t bytes : {needed - 1, needed, needed + 1}) {
    grid_config config = config_for(prompts, how);
    config.spans_bytes = bytes;
    auto g = *grid::start(m.weights, config);
    joins = 0;
    EXPECT_TRUE(run_on(*g, g->depth(), 53, prompts, how) == want) << bytes;
    EXPECT_EQ(joins, bytes < needed ? 0u : 12u) << bytes;
  }
}

/// Every token a decode, from within the first span on.
TEST(Spans, AreSharedFromTheFirstTokenOfTheSecond) {
  random_model m(long_shape(), {});
  auto want = run(m.weights, prompts, {});
  manner how{.threads = 2, .chunk = 1, .row = &counting_row()};
  EXPECT_EQ(joins_of(m, how, want), (2150 - span_keys) * 12);
}

}  // namespace
}  // namespace lethe::testing

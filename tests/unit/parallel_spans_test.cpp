#include <gtest/gtest.h>

#include <atomic>

#include "tests/unit/parallel_grid_run.hpp"
#include "tests/unit/parallel_random_model.hpp"

// Decodes whose keys several threads share, span by span.

namespace lethe::testing {
namespace {

std::atomic<uint32_t> joins;
std::atomic<const float*> joined;  // the last ones

/// The best row, counting.
const cpu_row& counting_row() {
  static const cpu_row row = [] {
    cpu_row r = best_cpu_row();
    r.join_spans = [](kv_type type, const float* spans, uint32_t count, uint32_t head_dim,
                      float* out) {
      joins.fetch_add(1);
      joined = spans;
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

/// The longest ends in a step of one token, alone.
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

using steps = std::vector<std::unique_ptr<planned>>;

/// What `ranks` say to steps that are given.
std::vector<logit_rows> run_steps(step_ranks& ranks, const steps& all, size_t prompts) {
  std::vector<logit_rows> rows(prompts);
  for (const auto& step : all) {
    ranks.submit(step->plan, step->data(53));
    EXPECT_TRUE(bool(ranks.wait_oldest()));
    take_rows(*step, 53, rows);
  }
  return rows;
}

/// A long decode behind others' rows: beside a prompt, and beside a short decode.
TEST(Spans, AreSharedBesideOthers) {
  random_model m(long_shape(), {});
  const std::vector<prompt> both{random_prompt(1100, 53, 3), random_prompt(20, 53, 4)};
  manner how{.threads = 2, .row = &counting_row()};
  auto want = run(m.weights, both, {});
  struct part {
    uint32_t prompt, from, tokens;
  };
  const std::vector<std::vector<part>> parts{{{0, 0, 1090}},
                                             {{1, 0, 5}, {0, 1090, 1}},
                                             {{1, 5, 1}, {0, 1091, 1}},
                                             {{1, 6, 14}, {0, 1092, 8}}};
  steps all;
  for (const auto& step : parts) {
    all.push_back(std::make_unique<planned>());
    for (const part& p : step) add_entry(*all.back(), both, p.prompt, p.from, p.tokens, 16);
  }
  auto g = *grid::start(m.weights, config_for(both, how));
  joins = 0;
  EXPECT_TRUE(run_steps(*g, all, both.size()) == want);
  EXPECT_EQ(joins, 2u * 12);
}

TEST(Spans, AreWipedWithScratch) {
  random_model m(long_shape(), {});
  manner how{.threads = 2, .chunk = chunk, .row = &counting_row()};
  auto g = *grid::start(m.weights, config_for(prompts, how));
  run_on(*g, g->depth(), 53, prompts, how);
  const shard& rank = g->rank(0);
  bytes_view spans = as_bytes(std::span(joined.load(), 3 * span_floats(16)));
  ASSERT_TRUE(rank.scratch().data() <= spans.data());
  ASSERT_TRUE(spans.data() + spans.size() <= rank.scratch().data() + rank.scratch().size());
  auto is_zero = [](std::byte b) { return b == std::byte{0}; };
  EXPECT_FALSE(std::ranges::all_of(spans, is_zero)) << "the control: they must lie there first";
  step_plan end;
  end.wipe_scratch = true;
  g->submit(end, {});
  ASSERT_TRUE(bool(g->wait_oldest()));
  EXPECT_TRUE(std::ranges::all_of(rank.scratch(), is_zero));
}

/// Of a prompt's last step the last layer has one row.
TEST(Spans, OfAPromptsLastRowAreShared) {
  random_model m(long_shape(), {});
  const std::vector<prompt> one{random_prompt(1100, 53, 3)};
  manner how{.threads = 2, .chunk = 1100, .row = &counting_row()};
  auto want = run(m.weights, one, {});
  steps all = plan_all(one, how);
  step_plan& plan = all[0]->plan;
  plan.logit_rows = plan.entries[0].logit_rows = 1;
  auto g = *grid::start(m.weights, config_for(one, how));
  joins = 0;
  g->submit(plan, all[0]->data(53));
  ASSERT_TRUE(bool(g->wait_oldest()));
  EXPECT_TRUE(all[0]->logits == want[0].back());
  EXPECT_EQ(joins, 6u) << "heads of the last layer";
}

TEST(Spans, OfTwoDecodesAreSharedTogether) {
  random_model m(long_shape(), {});
  const std::vector<prompt> two{random_prompt(1100, 53, 5), random_prompt(1060, 53, 6)};
  auto want = run(m.weights, two, {});
  manner how{.threads = 4, .chunk = 1, .row = &counting_row()};
  joins = 0;
  EXPECT_TRUE(run(m.weights, two, how) == want);
  EXPECT_EQ(joins, (1060 - span_keys) * 24 + 40 * 12);
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

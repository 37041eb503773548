#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "kernels/cpu_row.hpp"
#include "parallel/device_room.hpp"
#include "parallel/local_communicator.hpp"
#include "parallel/rank_step.hpp"
#include "runtime/batch/sampler.hpp"
#include "tests/unit/parallel_device_ranks.hpp"
#include "tests/unit/parallel_random_model.hpp"

// Steps of which a device draws some tokens and tells the other rows' logits.

namespace lethe::testing {
namespace {

constexpr uint32_t vocab = 53;

bool zero(std::span<const std::byte> b) {
  return std::ranges::all_of(b, [](std::byte x) { return x == std::byte{0}; });
}

/// All but every fourth of a step's rows, each in a manner of its own.
void ask_for_draws(step_plan& plan, uint32_t seed) {
  const sampling ways[] = {{.temperature = 0},
                           {.temperature = 3},
                           {.temperature = 2, .top_k = 20, .top_p = 0.9f},
                           {.typical_p = 0.8f, .min_p = 0.01f},
                           {.temperature = 1.5f, .top_p = 0.7f}};
  for (uint32_t row = 0; row < plan.logit_rows; ++row) {
    if (row % 4 == 1) continue;
    sampling how = ways[(row + seed) % std::size(ways)];
    how.seed = seed;
    plan.draws.push_back(numbers_of(how, row, row));
    plan.draws.back().row = row;
  }
}

void ask_for_draws(const std::vector<std::unique_ptr<planned>>& steps) {
  for (uint32_t i = 0; i < steps.size(); ++i) ask_for_draws(steps[i]->plan, i);
}

/// What the CPU's logits, prompt by prompt, say of a step that was done.
void expect_drawn(const planned& step, const std::vector<logit_rows>& cpu) {
  sampler_scratch scratch(vocab, std::pmr::get_default_resource());
  size_t drawn = 0;
  for (const plan_entry& e : step.plan.entries)
    for (uint32_t i = 0; i < e.logit_rows; ++i) {
      uint32_t row = e.first_logit_row + i;
      std::vector<float> want = cpu[e.sequence][e.position + i];
      if (drawn < step.plan.draws.size() && step.plan.draws[drawn].row == row) {
        uint32_t id = draw(best_cpu_row().draw, want, step.plan.draws[drawn], scratch);
        EXPECT_EQ(step.drawn[drawn++], id) << "row " << row;
        std::ranges::fill(want, -1e30f);  // nobody told it
      }
      EXPECT_TRUE(std::equal(want.begin(), want.end(), step.logits.begin() + row * vocab)) << row;
    }
  EXPECT_EQ(drawn, step.plan.draws.size());
}

struct DeviceDraws : ::testing::Test {
  random_model m{small_shape(2, 96), {dtype::q8_0, dtype::f32, dtype::f32}};
  std::vector<prompt> prompts{random_prompt(11, vocab, 1), random_prompt(1, vocab, 2),
                              random_prompt(5, vocab, 3)};
  manner how{.page_tokens = 4, .chunk = 6};
  std::vector<logit_rows> cpu = run(m.weights, prompts, {});

  result<std::unique_ptr<device_shard>> started_on(emulated::device& d, bool graphs = true) const {
    return shard_on(d, emulated_row, m.weights,
                    {shard_config_for(m.weights, prompts, how), graphs});
  }
  /// Steps of the prompts that want draws.
  std::vector<std::unique_ptr<planned>> asked() const {
    auto steps = plan_all(prompts, how);
    ask_for_draws(steps);
    return steps;
  }
};

TEST_F(DeviceDraws, AreTheHostsInGraphsAndInMixedSteps) {
  for (bool graphs : {true, false}) {
    emulated::device d;
    auto shard = started_on(d, graphs);
    ASSERT_TRUE(shard);
    auto steps = plan_mixed(prompts, how, 3);
    ask_for_draws(steps);
    for (const auto& step : steps) {
      ASSERT_TRUE((*shard)->execute(step->plan, step->data(vocab))) << d.fault();
      expect_drawn(*step, cpu);
    }
    EXPECT_EQ(d.counted().graphs_run > 0, graphs);
    shard->reset();
    EXPECT_EQ(d.left_full().size(), 2u) << "of weights; what was drawn leaves nothing";
  }
}

/// Of a prompt that is longer than the draws that there is room for.
TEST_F(DeviceDraws, TakeTurnsWhereThereIsNoRoomForAll) {
  prompts = {random_prompt(97, vocab, 4)};
  cpu = run(m.weights, prompts, {});
  emulated::device d;
  shard_config config = shard_config_for(m.weights, prompts, {});
  ASSERT_GT(device_room::of(m.weights, config, arithmetic::exact, 1).logit_rows * 3 / 4,
            device_room::of(m.weights, config, arithmetic::exact, 1).draws);
  auto shard = shard_on(d, emulated_row, m.weights, {config, false});
  ASSERT_TRUE(shard);
  auto steps = plan_all(prompts, {.chunk = 97});
  ask_for_draws(steps);
  ASSERT_TRUE((*shard)->execute(steps[0]->plan, steps[0]->data(vocab)));
  expect_drawn(*steps[0], cpu);
}

TEST_F(DeviceDraws, AreWipedWithScratch) {
  emulated::device d;
  auto shard = started_on(d);
  ASSERT_TRUE(shard);
  auto steps = asked();
  ASSERT_TRUE((*shard)->execute(steps[0]->plan, steps[0]->data(vocab)));
  auto holds = [&](uint32_t id) {
    auto bytes = (*shard)->scratch().last(256);  // ids that were drawn are the last of it
    std::vector<uint32_t> words(64);
    std::memcpy(words.data(), bytes.data(), 256);
    return std::ranges::find(words, id) != words.end();
  };
  uint32_t id = std::ranges::max(steps[0]->drawn);
  ASSERT_GT(id, 0u);
  EXPECT_TRUE(holds(id));
  step_plan end;
  end.wipe_scratch = true;
  ASSERT_TRUE((*shard)->execute(end, {}));
  EXPECT_FALSE(holds(id));
  EXPECT_TRUE(zero((*shard)->scratch()));
}

TEST_F(DeviceDraws, AreTheHostsInCuts) {
  for (cut ranks : {cut{2, 1}, {1, 2}, {2, 2}, {4, 1}}) {
    manner cut_how = how;
    cut_how.ranks = ranks;
    cpu = run(m.weights, prompts, {.ranks = ranks});
    device_ranks d(m.weights, prompts, cut_how);
    d.start();
    auto steps = plan_mixed(prompts, cut_how, 2);
    ask_for_draws(steps);
    for (const auto& step : steps) {
      d.execute(*step);
      d.expect_no_errors();
      expect_drawn(*step, cpu);
    }
    d.end();
  }
}

TEST_F(DeviceDraws, AreRefusedWhereTheyMeanNothing) {
  emulated::device d;
  auto shard = started_on(d);
  ASSERT_TRUE(shard);
  auto steps = asked();
  auto said = [&](auto change) {
    planned p = *steps[0];
    change(p.plan.draws);
    auto done = (*shard)->execute(p.plan, p.data(vocab));
    return done ? "" : done.why().text;
  };
  using draws = std::vector<row_draw>;
  auto numbers = [&](auto change) {
    return said([&](draws& all) { change(all[2]); }).ends_with("by numbers out of range");
  };
  EXPECT_TRUE(numbers([](row_draw& r) { r.temperature = NAN; }));
  EXPECT_TRUE(numbers([](row_draw& r) { r.temperature = -1; }));
  EXPECT_TRUE(numbers([](row_draw& r) { r.temperature = INFINITY; }));
  EXPECT_TRUE(numbers([](row_draw& r) { r.top_p = 0; }));
  EXPECT_TRUE(numbers([](row_draw& r) { r.top_p = 1.5f; }));
  EXPECT_TRUE(numbers([](row_draw& r) { r.typical_p = NAN; }));
  EXPECT_TRUE(numbers([](row_draw& r) { r.min_p = -0.5f; }));
  EXPECT_TRUE(numbers([](row_draw& r) { r.u = 1; }));
  EXPECT_TRUE(numbers([](row_draw& r) { r.u = NAN; }));
  EXPECT_NE(said([](draws& all) { all.back().row = 1000; }), "");
  EXPECT_NE(said([](draws& all) { all[1].row = all[0].row; }), "");
  EXPECT_NE(said([](draws& all) { std::swap(all[0], all[1]); }), "");
  planned p = *steps[0];
  step_data data = p.data(vocab);
  data.drawn = nullptr;
  EXPECT_FALSE((*shard)->execute(p.plan, data));
  EXPECT_EQ(d.finish(), 0);
  EXPECT_TRUE(zero((*shard)->scratch())) << "untouched";
  EXPECT_EQ(said([](draws&) {}), "");

  auto groups = make_local_group(1, false);
  shard_config cores = shard_config_for(m.weights, prompts, how);
  cores.row = &best_cpu_row();
  auto on_cores = shard::make(m.weights, cores, *groups[0], *groups[0]);
  ASSERT_TRUE(on_cores);
  EXPECT_FALSE((*on_cores)->execute(p.plan, p.data(vocab)));
  p.plan.draws.clear();
  EXPECT_TRUE((*on_cores)->execute(p.plan, p.data(vocab)));
}

/// Rows of 3 tokens: what was drawn, and where each row of logits stood.
TEST(RankAnswers, ComeToTheirPlaces) {
  const std::vector<std::vector<uint32_t>> cases{{}, {0, 2, 3}, {1, 4}, {0, 1, 2, 3, 4}, {4}};
  for (const auto& drawn : cases) {
    step_plan plan;
    plan.logit_rows = 5;
    for (uint32_t row : drawn) plan.draws.push_back({.row = row});
    std::vector<float> theirs(15), mine(15, -1.0f);
    std::iota(theirs.begin(), theirs.end(), 0.0f);
    std::vector<uint32_t> ids, got(drawn.size());
    for (uint32_t row : drawn) ids.push_back(100 + row);
    auto group = make_local_group(2, false);
    std::thread other([&] {
      EXPECT_TRUE(tell_answer(*group[1], plan, {nullptr, theirs.data(), ids.data()}, 3));
      EXPECT_TRUE(group[1]->flush());
    });
    EXPECT_TRUE(hear_answer(*group[0], plan, {nullptr, mine.data(), got.data()}, 3, 1));
    other.join();
    EXPECT_EQ(got, ids);
    for_rows_told(plan, [&](uint32_t first, uint32_t count) {
      for (uint32_t i = first * 3; i < (first + count) * 3; ++i) EXPECT_EQ(mine[i], float(i));
    });
  }
}

}  // namespace
}  // namespace lethe::testing

#include "parallel/process_ranks.hpp"

#include <gtest/gtest.h>

#include "parallel/local_communicator.hpp"
#include "parallel/plan_bytes.hpp"
#include "tests/unit/parallel_gloo_group.hpp"
#include "tests/unit/parallel_grid_run.hpp"
#include "tests/unit/parallel_random_model.hpp"

// The leader and the other ranks, here all in one process; tests/e2e has them in several.

namespace lethe::testing {
namespace {

std::vector<prompt> some_prompts() {
  return {random_prompt(41, 53, 1), random_prompt(1, 53, 2), random_prompt(18, 53, 3)};
}

std::vector<rank_groups> local_groups(const cut& c) {
  uint32_t ranks = c.tensor * c.pipeline;
  auto plans = make_local_group(ranks, false), results = make_local_group(ranks, false);
  auto world = make_local_group(ranks, false);
  std::vector<rank_groups> all(ranks);
  for (uint32_t stage = 0; stage < c.pipeline; ++stage) {
    auto tensor = make_local_group(c.tensor, false);
    for (uint32_t t = 0; t < c.tensor; ++t) {
      uint32_t r = stage * c.tensor + t;
      all[r] = {std::move(plans[r]), std::move(results[r]), std::move(tensor[t]),
                std::move(world[r])};
    }
  }
  return all;
}

std::vector<rank_groups> gloo_groups(const cut& c, bool protected_link) {
  memory_rank_store store;
  uint32_t ranks = c.tensor * c.pipeline;
  std::vector<rank_groups> all(ranks);
  on_all(ranks, [&](uint32_t r) {
    gloo_config base = gloo_rank(r, ranks, protected_link);
    base.group = "replica 0";
    auto joined = join_rank_groups(base, c, store);
    ASSERT_TRUE(joined) << joined.why().text;
    all[r] = *std::move(joined);
  });
  return all;
}

enum class over : uint8_t { local, gloo, gloo_protected };

/// A replica whose ranks other than the first are threads here.
class replica {
 public:
  replica(const model_weights& weights, const grid_config& config, over how)
      : replica(weights, config,
                how == over::local ? local_groups(config.ranks)
                                   : gloo_groups(config.ranks, how == over::gloo_protected)) {}
  replica(const model_weights& weights, const grid_config& config, std::vector<rank_groups> groups,
          std::function<grid_config(uint32_t)> config_of = {})
      : ends(groups.size()) {
    for (uint32_t r = 1; r < groups.size(); ++r)
      others_.emplace_back([this, r, &weights, g = std::move(groups[r]),
                            c = config_of ? config_of(r) : config]() mutable {
        ends[r] = serve_rank(weights, c, std::move(g), false);
      });
    auto started = process_ranks::start(weights, config, std::move(groups[0]), false);
    if (started)
      leader = *std::move(started);
    else
      ends[0] = started.why();
  }
  ~replica() { end(); }
  void end() {
    leader.reset();
    for (std::thread& t : others_) t.join();
    others_.clear();
  }
  std::unique_ptr<process_ranks> leader;
  std::vector<result<void>> ends;

 private:
  std::vector<std::thread> others_;
};

class ProcessRanks : public ::testing::TestWithParam<over> {};
INSTANTIATE_TEST_SUITE_P(Over, ProcessRanks,
                         ::testing::Values(over::local, over::gloo, over::gloo_protected),
                         [](const auto& p) {
                           return p.param == over::local  ? "Local"
                                  : p.param == over::gloo ? "Gloo"
                                                          : "GlooProtected";
                         });

TEST_P(ProcessRanks, GivesTheBitsOfOneRank) {
  for (auto types :
       {random_model::types{}, random_model::types{dtype::bf16, dtype::q8_0, dtype::q8_0}}) {
    random_model m(small_shape(4, 256), types);
    auto prompts = some_prompts();
    auto want = run(m.weights, prompts, {});
    for (cut c : {cut{1, 1}, cut{2, 1}, cut{1, 2}, cut{2, 2}, cut{4, 1}, cut{1, 3}, cut{8, 1}}) {
      manner how{.ranks = c, .chunk = 7};
      replica r(m.weights, config_for(prompts, how), GetParam());
      ASSERT_TRUE(r.leader) << r.ends[0].why().text;
      EXPECT_EQ(r.leader->depth(), c.pipeline);
      EXPECT_TRUE(run_on(*r.leader, r.leader->depth(), 53, prompts, how) == want)
          << c.tensor << " x " << c.pipeline;
      r.end();
      for (auto& end : r.ends) EXPECT_TRUE(end) << end.why().text;
    }
  }
}

/// Steps that nobody sees the end of: the leader must hear of it.
TEST_P(ProcessRanks, EndsStepsWithoutLogitsWhenEveryRankHasDoneThem) {
  random_model m(small_shape(4, 256), {});
  auto prompts = some_prompts();
  for (cut c : {cut{2, 1}, cut{1, 2}, cut{2, 2}, cut{2, 3}, cut{1, 4}}) {
    manner how{.ranks = c, .chunk = 5};
    replica r(m.weights, config_for(prompts, how), GetParam());
    auto want = run(m.weights, prompts, {});
    auto steps = plan_all(prompts, how);
    std::vector<step_plan> wipes(steps.size());
    size_t taken = 0, sent = 0;
    auto submit = [&](const step_plan& plan, const step_data& data) {
      if (sent - taken == c.pipeline) {
        ASSERT_TRUE(r.leader->wait_oldest());
        ++taken;
      }
      r.leader->submit(plan, data);
      ++sent;
    };
    for (size_t i = 0; i < steps.size(); ++i) {
      step_plan& plan = steps[i]->plan;
      if (i + 1 < steps.size()) {
        plan.logit_rows = 0;
        for (plan_entry& e : plan.entries) e.logit_rows = 0;
      }
      submit(plan, steps[i]->data(53));
      wipes[i].wipe_scratch = true;
      submit(wipes[i], {});
    }
    for (; taken < sent; ++taken) ASSERT_TRUE(r.leader->wait_oldest());
    const plan_entry& e = steps.back()->plan.entries.back();
    EXPECT_TRUE(std::equal(want[e.sequence].back().begin(), want[e.sequence].back().end(),
                           steps.back()->logits.end() - 53));
  }
}

TEST_P(ProcessRanks, ComputesOnTheWaitingCallersThreadToo) {
  random_model m(small_shape(4, 256), {});
  auto prompts = some_prompts();
  manner how{.ranks = {2, 1}, .chunk = 4};
  auto want = run(m.weights, prompts, how);
  replica r(m.weights, config_for(prompts, how), GetParam());
  std::vector<logit_rows> got(prompts.size());
  size_t n = 0;
  for (auto& step : plan_all(prompts, how)) {
    step_data data = step->data(53);
    data.caller_waits = n++ % 3 != 1;
    r.leader->submit(step->plan, data);
    ASSERT_TRUE(r.leader->wait_oldest());
    take_rows(*step, 53, got);
  }
  EXPECT_TRUE(got == want);
}

TEST_P(ProcessRanks, WipesOnEveryRankBetweenStepsWithoutHarm) {
  random_model m(small_shape(4, 256), {});
  std::vector<prompt> prompts{random_prompt(40, 53, 1), random_prompt(40, 53, 2)};
  manner how{.ranks = {2, 2}, .chunk = 3, .wipes = true};
  auto want = run(m.weights, prompts, {});
  replica r(m.weights, config_for(prompts, how), GetParam());
  EXPECT_TRUE(run_on(*r.leader, r.leader->depth(), 53, prompts, how) == want);
}

TEST(ProcessRanksOverGloo, WipeWhatOthersSentThemWhenAPlanSaysSo) {
  random_model m(small_shape(4, 256), {});
  auto prompts = some_prompts();
  manner how{.ranks = {2, 2}};
  auto groups = gloo_groups(how.ranks, false);
  std::vector<const gloo_communicator*> tensors;
  for (auto& g : groups) tensors.push_back(dynamic_cast<gloo_communicator*>(g.tensor.get()));
  replica r(m.weights, config_for(prompts, how), std::move(groups));
  auto zeroes = [&] {
    return std::ranges::count_if(tensors, [](const gloo_communicator* c) {
      return std::ranges::all_of(c->scratch(), [](std::byte b) { return b == std::byte{0}; });
    });
  };
  run_on(*r.leader, 2, 53, prompts, how);
  EXPECT_EQ(zeroes(), 0);
  step_plan end;
  end.wipe_scratch = true;
  r.leader->submit(end, {});
  ASSERT_TRUE(r.leader->wait_oldest());
  EXPECT_EQ(zeroes(), 4);
}

TEST_P(ProcessRanks, EndsEveryRankWhenAPlanIsRefused) {
  random_model m(small_shape(4, 256), {});
  auto prompts = some_prompts();
  manner how{.ranks = {2, 2}};
  replica r(m.weights, config_for(prompts, how), GetParam());
  auto steps = plan_all(prompts, how);
  steps[0]->ids[3] = 53;
  r.leader->submit(steps[0]->plan, steps[0]->data(53));
  auto done = r.leader->wait_oldest();
  ASSERT_FALSE(done);
  r.end();
  for (size_t i = 1; i < r.ends.size(); ++i) EXPECT_FALSE(r.ends[i]);
}

TEST_P(ProcessRanks, EndsEveryRankWhenAborted) {
  random_model m(small_shape(4, 256), {});
  auto prompts = some_prompts();
  manner how{.ranks = {2, 2}};
  replica r(m.weights, config_for(prompts, how), GetParam());
  r.leader->abort();
  auto steps = plan_all(prompts, how);
  r.leader->submit(steps[0]->plan, steps[0]->data(53));
  auto done = r.leader->wait_oldest();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.why().text, "ranks: aborted");
  r.end();
  for (size_t i = 1; i < r.ends.size(); ++i) EXPECT_FALSE(r.ends[i]);
}

TEST_P(ProcessRanks, RefusesARankOfAnotherConfig) {
  random_model m(small_shape(4, 256), {});
  grid_config config = config_for(some_prompts(), {.ranks = {2, 1}});
  auto groups = GetParam() == over::local
                    ? local_groups(config.ranks)
                    : gloo_groups(config.ranks, GetParam() == over::gloo_protected);
  replica r(m.weights, config, std::move(groups), [config](uint32_t) {
    grid_config other = config;
    other.pages += 1;
    return other;
  });
  r.end();
  ASSERT_FALSE(r.ends[1]);
  EXPECT_EQ(r.ends[1].why().text,
            "ranks: rank 1 has another model or config than the leader; give all the same");
}

TEST(RankGroups, RefusesRanksThatDoNotFitTheCut) {
  memory_rank_store store;
  auto joined = join_rank_groups(gloo_rank(0, 3), {2, 2}, store);
  ASSERT_FALSE(joined);
  EXPECT_EQ(joined.why().text, "ranks: rank 0 of 3 does not fit tensor 2 x pipeline 2");
}

step_plan some_plan() {
  step_plan p;
  p.id = uint64_t{1} << 40 | 5;
  p.entries = {{1, 2, 3, 0, 0, 2, 1, 0}, {4, 5, 1, 3, 2, 1, 0, 0}};
  p.draws = {{.row = 0, .top_k = 5, .temperature = 0.5f, .u = 0.25}};
  p.pages = {7, 8, 9};
  p.copies = {{1, 2, 3}};
  p.wipes = {4, 5};
  p.tokens = 4;
  p.logit_rows = 1;
  p.wipe_scratch = true;
  return p;
}

TEST(PlanBytes, GiveBackWhatWasWritten) {
  auto b = plan_bytes::make();
  ASSERT_TRUE(b);
  std::vector<uint32_t> ids{10, 11, 12, 13};
  step_plan plan = some_plan(), got;
  const uint32_t* their_ids = nullptr;
  ASSERT_TRUE(b->write(plan, ids.data()));
  auto more = b->read(got, their_ids);
  ASSERT_TRUE(more && *more);
  EXPECT_TRUE(std::equal(ids.begin(), ids.end(), their_ids));
  auto same = [](const auto& a, const auto& c) {
    return a.size() == c.size() && std::memcmp(a.data(), c.data(), std::span(a).size_bytes()) == 0;
  };
  EXPECT_TRUE(same(plan.entries, got.entries) && same(plan.copies, got.copies) &&
              same(plan.draws, got.draws));
  EXPECT_TRUE(plan.pages == got.pages && plan.wipes == got.wipes && plan.id == got.id);
  EXPECT_TRUE(got.tokens == 4 && got.logit_rows == 1 && got.wipe_scratch);
  EXPECT_TRUE(b->rest()->empty());
  b->wipe();
  EXPECT_TRUE(std::ranges::all_of(b->first(), [](std::byte x) { return x == std::byte{0}; }));
  b->write_end();
  EXPECT_FALSE(*b->read(got, their_ids));
}

TEST(PlanBytes, HoldLongPlansInTwoPieces) {
  auto b = plan_bytes::make();
  step_plan plan = some_plan(), got;
  plan.pages.resize(100'000, 6);
  std::vector<uint32_t> ids(4, 1);
  const uint32_t* their_ids = nullptr;
  ASSERT_TRUE(b->write(plan, ids.data()));
  EXPECT_GT(b->rest()->size(), 390'000u);
  ASSERT_TRUE(*b->read(got, their_ids));
  EXPECT_EQ(got.pages, plan.pages);
  plan.pages.resize(plan_bytes::bytes_max / 4);
  auto refused = b->write(plan, ids.data());
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.why().text.find("run fewer sequences"), std::string::npos);
}

/// Whatever the bytes say: nothing outside of them is read, and what is read fits them.
TEST(PlanBytes, RefuseWhatNoLeaderWrites) {
  auto b = plan_bytes::make();
  std::vector<uint32_t> ids(4, 1);
  uint32_t seed = 1;
  size_t refused = 0;
  for (uint32_t round = 0; round < 20'000; ++round) {
    ASSERT_TRUE(b->write(some_plan(), ids.data()));
    for (uint32_t i = 0; i <= round % 3; ++i) {
      seed = seed * 1664525 + 1013904223;
      b->first()[(seed >> 8) % 56] = std::byte(seed >> 24);
    }
    step_plan got;
    const uint32_t* their_ids = nullptr;
    auto more = b->read(got, their_ids);
    refused += !more;
    if (!more || !*more) continue;
    size_t bytes = 56 + (got.entries.size() + got.draws.size()) * 32 + got.copies.size() * 12 +
                   (got.pages.size() + got.wipes.size() + got.tokens) * 4;
    EXPECT_LE(bytes, plan_bytes::bytes_max);
  }
  EXPECT_GT(refused, 1000u);
}

}  // namespace
}  // namespace lethe::testing

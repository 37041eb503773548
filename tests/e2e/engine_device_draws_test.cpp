// An engine whose rank is a device gives the answers of one on cores, whoever draws their tokens.

#include "tests/cuda/emulated_device.hpp"
#include "tests/cuda/emulated_row.hpp"
#include "tests/e2e/engine_run.hpp"
#include "tests/unit/parallel_device_run.hpp"

namespace lethe::e2e {
namespace {

const std::filesystem::path tiny = std::filesystem::path(places::source) / "models/tiny";

struct told {
  uint64_t drawn = 0, rows = 0;
};

/// One rank that is a device, and what steps asked of it.
class device_alone final : public step_ranks {
 public:
  device_alone(const opened& m, const grid_config& g, told& t) : told_(t) {
    shard_config config = rank_config(g, part_for(m.weights().shape, {}, 0, 0), false);
    auto made = testing::shard_on(device_, emulated_row, m.weights(), {config, true});
    if (!made) throw std::runtime_error(made.why().text);
    shard_ = *std::move(made);
  }
  bool draws() const override { return true; }
  void submit(const step_plan& plan, const step_data& data) override {
    told_.drawn += plan.draws.size();
    told_.rows += plan.logit_rows;
    plan_ = &plan, data_ = data;
  }
  result<void> wait_oldest() override { return shard_->execute(*plan_, data_); }

 private:
  told& told_;
  emulated::device device_;
  std::unique_ptr<device_shard> shard_;
  const step_plan* plan_ = nullptr;
  step_data data_;
};

std::pair<std::vector<answered>, told> run_on_a_device(const opened& m, const engine_config& c,
                                                       const std::vector<wanted>& all) {
  told t;
  auto e = engine::start(m.weights(), c,
                         [&](const grid_config& g) -> result<std::unique_ptr<step_ranks>> {
                           return std::unique_ptr<step_ranks>(new device_alone(m, g, t));
                         });
  if (!e) throw std::runtime_error(e.why().text);
  auto out = run_all(**e, all, m.vocab());
  EXPECT_TRUE(std::ranges::all_of((*e)->step_bytes(), [](std::byte b) {
    return b == std::byte{0};
  })) << "ids that came drawn are wiped with their requests";
  e->reset();
  return {std::move(out), t};
}

struct EngineDeviceDraws : ::testing::Test {
  opened m = open(tiny);
  engine_config config = small({.step_tokens = 32, .running = 8});
  logit_bias bias{7, 3};

  told expect_the_cores_answers(const std::vector<wanted>& all) {
    auto want = run_all(*start(m, config), all, m.vocab());
    auto [got, t] = run_on_a_device(m, config, all);
    EXPECT_EQ(got, want);
    return t;
  }
  static wanted ask(uint32_t seed, uint32_t choices, sampling how, bool prompt_logprobs = false) {
    how.seed = seed;
    return {{1 + seed, 2, 3, 4 + seed}, 6, choices, how, prompt_logprobs};
  }
};

TEST_F(EngineDeviceDraws, OfNumbersAloneAreTheDevices) {
  told t = expect_the_cores_answers({ask(1, 1, {.temperature = 0}), ask(2, 1, {}),
                                     ask(3, 1, {.temperature = 0.8f, .top_k = 40, .top_p = 0.9f}),
                                     ask(4, 1, {.typical_p = 0.9f, .min_p = 0.02f})});
  EXPECT_EQ(t.drawn, t.rows) << "no logits came out";
  EXPECT_EQ(t.drawn, 24u);
}

TEST_F(EngineDeviceDraws, OfAnythingElseAreTheHosts) {
  told t = expect_the_cores_answers(
      {ask(1, 1, {.repetition_penalty = 1.3f}), ask(2, 1, {.frequency_penalty = 0.4f}),
       ask(3, 1, {.bias = {&bias, 1}}), ask(4, 1, {.want_logprob = true}),
       ask(5, 1, {.want_logprob = true, .logprobs = 3})});
  EXPECT_EQ(t.drawn, 0u);
}

/// The first tokens of several choices come from one row of logits; prompts may want theirs.
TEST_F(EngineDeviceDraws, StandBesideTheHostsInOneStep) {
  told t = expect_the_cores_answers({ask(1, 3, {}), ask(2, 1, {.temperature = 0.7f}),
                                     ask(3, 1, {.presence_penalty = 0.5f}), ask(4, 1, {}, true)});
  EXPECT_EQ(t.drawn, 3u * 5 + 6 + 6);
  EXPECT_EQ(t.rows, t.drawn + 1 + 6 + 3) << "of choices at first, of a penalty, of a prompt";
}

/// Each row behind a guess with the numbers that its token would have had later.
TEST_F(EngineDeviceDraws, OfGuessedRowsAreTheDevices) {
  std::vector<wanted> all{ask(1, 1, {.temperature = 0}), ask(2, 1, {.temperature = 0.1f})};
  for (auto& w : all) {
    w.max_tokens = 60;
    for (uint32_t i = 0; i < 24; ++i) w.prompt.push_back(w.prompt[i]);
  }
  auto want = run_all(*start(m, config), all, m.vocab());
  config.looks_ahead = true;
  auto [got, t] = run_on_a_device(m, config, all);
  EXPECT_EQ(got, want);
  EXPECT_EQ(t.drawn, t.rows);
  EXPECT_GT(t.rows, 120u) << "no row too many: nothing was guessed wrong, or at all";
}

}  // namespace
}  // namespace lethe::e2e

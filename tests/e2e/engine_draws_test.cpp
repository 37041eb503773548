// Tokens of a step are drawn by threads that wait between steps; nobody sees that in an answer.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/batch/step_buffers.hpp"
#include "tests/e2e/engine_run.hpp"
#include "tests/places.hpp"

namespace lethe::e2e {
namespace {

const std::filesystem::path tiny = std::filesystem::path(places::source) / "models/tiny";

/// A grid, and how it was used.
class watched_grid final : public step_ranks {
 public:
  watched_grid(std::unique_ptr<grid> g, uint32_t& drawn) : grid_(std::move(g)), drawn_(drawn) {}
  void submit(const step_plan& plan, const step_data& data) override {
    ++in_flight_;
    grid_->submit(plan, data);
  }
  result<void> wait_oldest() override {
    --in_flight_;
    return grid_->wait_oldest();
  }
  uint32_t idle() const override { return grid_->idle(); }
  void run_idle(const work& f) override {
    EXPECT_EQ(in_flight_, 0u);
    ++drawn_;
    grid_->run_idle(f);
  }

 private:
  std::unique_ptr<grid> grid_;
  uint32_t in_flight_ = 0;
  uint32_t& drawn_;
};

/// Answers, and how often idle threads drew.
std::pair<std::vector<answered>, uint32_t> run_watched(const opened& m, const engine_config& c,
                                                       const std::vector<wanted>& all) {
  uint32_t drawn = 0;
  auto e = engine::start(
      m.weights(), c, [&](const grid_config& g) -> result<std::unique_ptr<step_ranks>> {
        auto made = grid::start(m.weights(), g);
        if (!made) return made.why();
        return std::unique_ptr<step_ranks>(new watched_grid(*std::move(made), drawn));
      });
  if (!e) throw std::runtime_error(e.why().text);
  auto out = run_all(**e, all, m.vocab());
  e->reset();
  return {std::move(out), drawn};
}

std::vector<wanted> asked_differently() {
  const sampling ways[] = {
      {.temperature = 0, .want_logprob = true, .logprobs = 5},
      {.temperature = 0.8f, .top_p = 0.9f, .seed = 1, .want_logprob = true},
      {.temperature = 1.2f, .top_k = 20, .min_p = 0.01f, .seed = 2},
      {.temperature = 1, .typical_p = 0.9f, .repetition_penalty = 1.2f, .seed = 3},
      {.temperature = 0.7f, .presence_penalty = 0.4f, .frequency_penalty = 0.3f, .seed = 4},
  };
  std::vector<wanted> all;
  for (uint32_t i = 0; i < 20; ++i)
    all.push_back({.prompt = {1 + i, 2, 3, 4 + i},
                   .max_tokens = 24 + i % 3,
                   .choices = 1 + i % 4,
                   .how = ways[i % 5]});
  return all;
}

TEST(EngineDraws, AreTheSameOnAnyNumberOfThreads) {
  auto m = open(tiny);
  auto all = asked_differently();
  auto [alone, never] = run_watched(m, small({.threads = 1}), {all[0]});
  EXPECT_EQ(never, 0u) << "one row is drawn where it is";
  auto expected = run_watched(m, small({.threads = 1}), all).first;
  EXPECT_EQ(expected[0], alone[0]);
  constexpr size_t of_four = 3;  // choices, which its prompt's row draws together
  const engine_config ways[] = {{.threads = 2},
                                {.threads = 3},
                                {.threads = drawers_max + 3},
                                {.ranks = {2, 1}, .threads = 2},
                                {.ranks = {1, 2}, .threads = 2}};
  for (const engine_config& how : ways) {
    SCOPED_TRACE(
        fmt::format("{}x{}, {} threads", how.ranks.tensor, how.ranks.pipeline, how.threads));
    EXPECT_EQ(run_watched(m, small(how), all).first, expected);
    // With no other request no step is in flight, whatever the pipeline's depth and the hour.
    auto [got, drawn] = run_watched(m, small(how), {all[of_four]});
    EXPECT_EQ(got[0], expected[of_four]);
    EXPECT_GT(drawn, 0u);
  }
}

}  // namespace
}  // namespace lethe::e2e

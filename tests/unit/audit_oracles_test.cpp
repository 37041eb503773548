// What a user, an operator or another user can find out by asking: each with the weakness that
// would let them.
#include <gtest/gtest.h>

#include "runtime/audit/completion_order.hpp"
#include "runtime/audit/metrics_differences.hpp"
#include "runtime/audit/prefix_oracle.hpp"
#include "tests/places.hpp"

namespace lethe::audit {
namespace {

void stands(const finding& f) {
  EXPECT_EQ(f.said, verdict::held) << f.what << ": " << f.measured << f.note;
  ASSERT_FALSE(f.controls.empty());
  for (const auto& c : f.controls) EXPECT_TRUE(c.found) << c.without << ": " << c.measured;
}

TEST(Oracles, MetricsDontTellALength) { stands(measure_metrics_differences({.victims = 200})); }

TEST(Oracles, ContentDoesNotOrderAnswers) { stands(measure_completion_order({.rounds = 100})); }

/// Of a prompt and its beginning, asked for one after the other.
std::vector<std::vector<uint32_t>> answers_of(const served_model& model, bool keeps) {
  auto serving = engine::start(model.weights->weights(), {.threads = 1, .keeps_prefixes = keeps});
  EXPECT_TRUE(serving);
  std::vector<uint32_t> prompt(70);
  for (uint32_t i = 0; i < prompt.size(); ++i) prompt[i] = 3 + i * 5;
  std::vector<std::vector<uint32_t>> all;
  for (size_t tokens : {70, 70, 40, 64}) {
    auto r = *request::make(size_t{1} << 20);
    EXPECT_TRUE(r->ask({.prompt = std::span(prompt).first(tokens), .max_tokens = 12, .choices = 2},
                       model.model.shape().vocab));
    EXPECT_TRUE((*serving)->submit(*r));
    for (uint32_t seen = r->events(); !r->gone(); seen = r->events()) r->wait(seen);
    for (uint32_t c = 0; c < 2; ++c) {
      const auto& ids = r->choice(c).ids;
      all.emplace_back(ids.begin(), ids.end());
    }
    r->forget();
  }
  return all;
}

/// Else the control below would be of another model.
TEST(Oracles, KeptPrefixesChangeNoAnswer) {
  auto model =
      served_model::open({.path = std::string(places::source) + "/models/tiny", .threads = 1});
  ASSERT_TRUE(model) << model.why().text;
  EXPECT_EQ(answers_of(**model, true), answers_of(**model, false));
}

TEST(Oracles, NobodyLearnsHowAnothersPromptBegan) {
  auto model =
      served_model::open({.path = std::string(places::source) + "/models/tiny", .threads = 1});
  ASSERT_TRUE(model) << model.why().text;
  stands(measure_prefix_oracle(
      {.model = *model, .pairs = 30, .prefix_pages = 4, .judge_times = false}));
}

}  // namespace
}  // namespace lethe::audit

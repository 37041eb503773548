// What Q8_0 may cost the embedded model, against the same model in f32: on chats that it has never
// seen, of which half of the distributions and a quarter of the questions are asked here
// (bench/accuracy_bench asks all). What is too coarse must show.

#include <gtest/gtest.h>

#include "bench/ember_speaker.hpp"
#include "bench/next_tokens.hpp"
#include "bench/typed_models.hpp"
#include "tests/places.hpp"

namespace lethe::accuracy {
namespace {

constexpr size_t chats = 100, questions_of_a_task = 50;

class Accuracy : public ::testing::Test {
 protected:
  Accuracy() : words_(ember::speaker::opened(folder_)), models_(words_->model) {}

  std::vector<judged_text> held_out() const {
    ember::speaker speaker(words_);
    auto rows = ember::examples_of(folder_ / "eval" / "chat.jsonl");
    rows.resize(chats);
    std::vector<judged_text> texts;
    for (const auto& chat : rows) texts.push_back(ember::judged(speaker, chat));
    return texts;
  }
  /// Of a hundred.
  double score(dtype type) {
    ember::speaker speaker(words_, models_.of(type), {.threads = 1});
    size_t accepted = 0, all = 0;
    for (const auto& [task, t] : ember::evaluation(speaker, folder_ / "eval", questions_of_a_task))
      accepted += t.accepted, all += t.all;
    EXPECT_EQ(all, 10 * questions_of_a_task);
    return 100.0 * double(accepted) / double(all);
  }

  std::filesystem::path folder_ = std::filesystem::path(places::source) / "models/ember";
  std::shared_ptr<const served_model> words_;
  typed_models models_;
};

TEST_F(Accuracy, EightBitsAlmostAlwaysSayTheSameTokenNext) {
  std::vector<candidate_run> runs{{"q8_0", &models_.of(dtype::q8_0)},
                                  {"q4_0", &models_.of(dtype::q4_0)}};
  compare(models_.of(dtype::f32), held_out(), runs, [](size_t) {});
  const agreement &eight = runs[0].judged, &four = runs[1].judged;
  ASSERT_GT(eight.positions(), 5000u);
  EXPECT_GE(eight.top1(), 0.995);
  EXPECT_LE(eight.kl(), 1e-4);
  EXPECT_LT(four.top1(), 0.995) << "four bits are not told from eight: what is measured?";
  EXPECT_GT(four.kl(), 10 * eight.kl());
  // Its users' words it was not taught, and finds many of them about as likely.
  EXPECT_GE(runs[0].everywhere.top1(), 0.99);
  EXPECT_LT(runs[1].everywhere.top1(), 0.95);
}

TEST_F(Accuracy, EightBitsAnswerAsWellAsF32) {
  EXPECT_GE(score(dtype::q8_0), score(dtype::f32) - 0.5);
}

TEST_F(Accuracy, TheEvaluationTellsCoarseWeights) {
  typed_models coarse(words_->model, [](std::string_view name, std::span<float> row) {
    if (name.ends_with(".down"))
      for (float& v : row) v = std::round(v);
  });
  ember::speaker speaker(words_, coarse.of(dtype::f32), {.threads = 1});
  size_t accepted = 0, all = 0;
  for (const auto& [task, t] : ember::evaluation(speaker, folder_ / "eval", 5))
    accepted += t.accepted, all += t.all;
  EXPECT_LT(100.0 * double(accepted) / double(all), 90);
}

}  // namespace
}  // namespace lethe::accuracy

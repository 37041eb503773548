// What answers show of themselves, through the code that shapes and seals them.
#include "runtime/audit/stream_shapes.hpp"

#include <gtest/gtest.h>

#include <bit>

#include "runtime/audit/trace_shapes.hpp"
#include "tests/places.hpp"

namespace lethe::audit {
namespace {

class AnswerShapes : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto opened =
        served_model::open({.path = std::string(places::source) + "/models/tiny", .threads = 1});
    ASSERT_TRUE(opened) << opened.why().text;
    settings.model = *opened;
  }
  static void TearDownTestSuite() { settings.model.reset(); }

  static inline shape_settings settings{.prompts = 16, .captures = 12, .tokens_most = 120};
};

TEST_F(AnswerShapes, SayTheirClassAndNothingElse) {
  auto f = measure_answer_shapes(settings);
  EXPECT_EQ(f.said, verdict::held) << f.measured << f.note;
  ASSERT_EQ(f.controls.size(), 2u);
  for (const auto& c : f.controls) EXPECT_TRUE(c.found) << c.without << ": " << c.measured;
}

TEST_F(AnswerShapes, OfOneSizeWithoutATickAreFoundOut) {
  auto wire = answer_wire::make(settings.model);
  ASSERT_TRUE(wire) << wire.why().text;
  auto answers = make_answers(*settings.model, 12, 60, 1);
  auto taken = capture_all(**wire, answers, {.chunk_bytes = 2048}, 12, 1);
  ASSERT_TRUE(taken) << taken.why().text;
  EXPECT_EQ(judge_captures(*taken, {}).said, verdict::broken);
}

/// What is captured is what the network would see: else the two tests above say nothing.
TEST_F(AnswerShapes, AreCapturedAsTheyLeave) {
  auto wire = answer_wire::make(settings.model);
  ASSERT_TRUE(wire) << wire.why().text;
  auto answers = make_answers(*settings.model, 4, 100, 3);
  std::mt19937_64 dice(1);
  for (const auto& a : answers) {
    auto off = (*wire)->see(a, {}, dice), size = (*wire)->see(a, {256, 0}, dice),
         tick = (*wire)->see(a, {256, 50}, dice);
    ASSERT_TRUE(off && size && tick);
    EXPECT_GE(off->wire.size(), a.ids.size()) << "a piece for each token";
    EXPECT_TRUE(std::has_single_bit(size->wire.size()));
    EXPECT_TRUE(std::has_single_bit(tick->wire.size()));
    for (const auto* seen : {&*size, &*tick})
      for (size_t i = 1; i < seen->wire.size(); ++i)
        EXPECT_EQ(seen->wire[i].bytes, seen->wire[1].bytes) << i;
    for (size_t i = 1; i < tick->messages.size(); ++i)
      EXPECT_NEAR(tick->messages[i].at_ms - tick->messages[i - 1].at_ms, 50, 1e-6);
    EXPECT_LE(tick->released_ms, tick->messages.back().at_ms);
  }
}

TEST_F(AnswerShapes, LeaveTheSameRecordsWhateverTheySay) {
  auto f = measure_trace_shapes(settings);
  EXPECT_EQ(f.said, verdict::held) << f.measured << f.note;
  EXPECT_TRUE(f.stands()) << f.controls.at(0).measured;
}

}  // namespace
}  // namespace lethe::audit

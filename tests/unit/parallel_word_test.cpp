#include "parallel/word.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace lethe {
namespace {

class Word : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Waiting, Word, ::testing::Bool(),
                         [](const auto& p) { return p.param ? "Spinning" : "Asleep"; });

TEST_P(Word, CarriesWhatWasWrittenBeforeTheAdvance) {
  word there, back;
  int value = 0;
  std::thread other([&] {
    for (uint32_t i = 0; i < 2000; ++i) {
      ASSERT_TRUE(there.wait_past(word::nth(i), GetParam()));
      ASSERT_EQ(value, int(i));
      back.advance();
    }
  });
  for (uint32_t i = 0; i < 2000; ++i) {
    value = int(i);
    there.advance();
    ASSERT_TRUE(back.wait_past(word::nth(i), GetParam()));
  }
  other.join();
}

TEST_P(Word, ReturnsFalseToThoseWhoWaitAndThoseWhoComeLater) {
  word w;
  std::thread waiting([&] { EXPECT_FALSE(w.wait_past(0, GetParam())); });
  std::this_thread::sleep_for(std::chrono::milliseconds(3));
  w.abort();
  waiting.join();
  EXPECT_FALSE(w.wait_past(w.count(), GetParam()));
  w.advance();
  EXPECT_TRUE(w.aborted());
}

TEST_P(Word, BarrierLetsNobodyRunAhead) {
  constexpr uint32_t threads = 3, rounds = 500;
  barrier meeting(threads, GetParam());
  std::atomic<uint32_t> arrived = 0;
  std::vector<std::thread> all;
  for (uint32_t t = 0; t < threads; ++t)
    all.emplace_back([&] {
      for (uint32_t i = 1; i <= rounds; ++i) {
        ++arrived;
        ASSERT_TRUE(meeting.wait());
        ASSERT_GE(arrived.load(), i * threads);
        ASSERT_TRUE(meeting.wait());
      }
    });
  for (std::thread& t : all) t.join();
  EXPECT_EQ(arrived.load(), threads * rounds);
}

TEST_P(Word, BarrierWakesEverybodyWhenAborted) {
  barrier meeting(3, GetParam());
  std::vector<std::thread> waiting;
  for (int i = 0; i < 2; ++i) waiting.emplace_back([&] { EXPECT_FALSE(meeting.wait()); });
  std::this_thread::sleep_for(std::chrono::milliseconds(3));
  meeting.abort();
  for (std::thread& t : waiting) t.join();
  EXPECT_FALSE(meeting.wait());
}

}  // namespace
}  // namespace lethe

#include "runtime/cluster/admission.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace lethe {
namespace {

using schema::Outcome;
using schema::Refusal;

/// Why a request found no place.
Refusal turned_away(admission& a, uint64_t request) {
  Refusal why{};
  EXPECT_FALSE(a.admit(request, why));
  return why;
}

std::optional<uint16_t> engine_for(admission& a, uint64_t request) {
  Refusal why{};
  auto at = a.admit(request, why);
  return at ? std::optional(at->engine) : std::nullopt;
}

TEST(Admission, GoesToTheSmallestShareNotToTheSmallestNumber) {
  admission a;
  (void)a.engine_ready(0, 1, 10);
  (void)a.engine_ready(1, 1, 2);
  std::map<uint16_t, int> placed;
  for (uint64_t id = 0; id < 12; ++id) ++placed[*engine_for(a, id)];
  EXPECT_EQ(placed[0], 10);
  EXPECT_EQ(placed[1], 2);
  EXPECT_EQ(turned_away(a, 12), Refusal::FULL);
  EXPECT_EQ(a.total.admitted, 12u);
  EXPECT_EQ(a.total.turned_away, 1u);
}

TEST(Admission, SaysWhyNot) {
  admission a;
  EXPECT_EQ(turned_away(a, 1), Refusal::NOT_READY);
  (void)a.engine_ready(0, 1, 1);
  a.engine_draining(0, 1);
  EXPECT_EQ(turned_away(a, 1), Refusal::NOT_READY);
  (void)a.engine_ready(0, 2, 1);
  EXPECT_TRUE(engine_for(a, 1));
  EXPECT_EQ(turned_away(a, 2), Refusal::FULL);
  a.leave();
  EXPECT_EQ(turned_away(a, 3), Refusal::LEAVING);
  EXPECT_FALSE(a.ready());
}

TEST(Admission, AnEngineWithoutCapacityHoldsNothing) {
  admission a;
  (void)a.engine_ready(0, 1, 0);
  EXPECT_EQ(turned_away(a, 1), Refusal::FULL);
}

TEST(Admission, ARequestIsHeldOnce) {
  admission a;
  (void)a.engine_ready(0, 1, 8);
  EXPECT_TRUE(engine_for(a, 1));
  EXPECT_FALSE(engine_for(a, 1));
  EXPECT_EQ(a.engines().at(0).held, 1u);
  EXPECT_TRUE(a.release(1, {0, 1}, Outcome::SERVED));
  EXPECT_FALSE(a.release(1, {0, 1}, Outcome::SERVED));
  EXPECT_EQ(a.engines().at(0).held, 0u);
  EXPECT_EQ(a.total.served, 1u);
}

TEST(Admission, AnEarlierEpochsWordCountsForNothing) {
  admission a;
  (void)a.engine_ready(0, 1, 8);
  EXPECT_TRUE(engine_for(a, 1));
  EXPECT_EQ(a.engine_ready(0, 2, 8), std::vector<uint64_t>{1});  // replaced: its request is lost
  EXPECT_TRUE(engine_for(a, 2));
  EXPECT_FALSE(a.release(2, {0, 1}, Outcome::SERVED));
  EXPECT_FALSE(a.release(2, {1, 2}, Outcome::SERVED));
  a.engine_draining(0, 1);
  EXPECT_TRUE(a.ready());
  EXPECT_TRUE(a.engine_lost(0, 1).empty());
  EXPECT_EQ(a.find(2)->epoch, 2u);
  EXPECT_EQ(a.total.failed, 1u);
}

TEST(Admission, ALostEngineTakesItsOwnRequestsOnly) {
  admission a;
  (void)a.engine_ready(0, 1, 4);
  (void)a.engine_ready(1, 1, 4);
  std::vector<uint64_t> on_first;
  for (uint64_t id = 0; id < 8; ++id)
    if (engine_for(a, id) == 0) on_first.push_back(id);
  auto lost = a.engine_lost(0, 1);
  std::ranges::sort(lost);
  EXPECT_EQ(lost, on_first);
  EXPECT_EQ(a.requests(), 4u);
  for (uint64_t id = 0; id < 8; ++id)
    EXPECT_EQ(bool(a.find(id)), std::ranges::find(lost, id) == lost.end());
}

TEST(Admission, AnOutcomeOfANewerEngineCountsAsFailed) {
  admission a;
  (void)a.engine_ready(0, 1, 1);
  EXPECT_TRUE(engine_for(a, 1));
  EXPECT_TRUE(a.release(1, {0, 1}, Outcome(77)));
  EXPECT_EQ(a.total.failed, 1u);
}

// In any order of events, what is held adds up and nobody holds more than it can.
TEST(Admission, WhateverHappensTheNumbersAddUp) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(seed);
    admission a;
    std::map<uint16_t, uint32_t> epochs;
    for (int i = 0; i < 400; ++i) {
      uint16_t engine = uint16_t(random() % 4);
      uint64_t request = random() % 40;
      Refusal why{};
      switch (random() % 8) {
        case 0:
          (void)a.engine_ready(engine, ++epochs[engine], uint32_t(random() % 6));
          break;
        case 1:
          (void)a.engine_lost(engine, uint32_t(epochs[engine] - random() % 2));
          break;
        case 2:
          a.engine_draining(engine, epochs[engine]);
          break;
        case 3:
        case 4:
          if (auto at = a.find(request)) (void)a.release(request, *at, Outcome(random() % 4));
          break;
        default:
          (void)a.admit(request, why);
      }
      size_t held = 0;
      for (const auto& [id, e] : a.engines()) {
        EXPECT_LE(e.held, e.capacity);
        held += e.held;
      }
      const auto& t = a.total;
      EXPECT_EQ(held, a.requests());
      EXPECT_EQ(t.admitted, t.served + t.refused + t.cancelled + t.failed + a.requests());
    }
  }
}

}  // namespace
}  // namespace lethe

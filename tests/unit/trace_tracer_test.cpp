// Rings of threads that come and go.
#include "runtime/trace/tracer.hpp"

#include <gtest/gtest.h>

#include <barrier>
#include <thread>

namespace lethe {
namespace {

constexpr uint32_t kept = 8;

tracer_config small() { return {.records = kept}; }

void write_from(tracer& t, uint64_t trace, uint32_t records) {
  for (uint32_t i = 0; i < records; ++i) t.write({.at_ns = i + 1, .trace = trace});
}

TEST(Tracer, AThreadThatEndedLeavesItsRingToTheNext) {
  tracer t(small());
  for (uint64_t i = 0; i < 20; ++i) std::thread([&t, i] { write_from(t, i, kept); }).join();
  auto all = t.read();
  EXPECT_EQ(all.records.size(), kept);
  EXPECT_EQ(all.lost, 19u * kept);
  for (const auto& r : all.records) EXPECT_EQ(r.trace, 19u);
}

TEST(Tracer, WhatAnEndedThreadWroteStaysUntilItsRoomIsNeeded) {
  tracer t(small());
  std::thread([&t] { write_from(t, 1, 3); }).join();
  EXPECT_EQ(t.read().records.size(), 3u);
  std::thread([&t] { write_from(t, 2, kept - 3); }).join();
  auto all = t.read();
  EXPECT_EQ(all.records.size(), kept);
  EXPECT_EQ(all.lost, 0u);
}

TEST(Tracer, ThreadsThatLiveAtOnceHaveRingsOfTheirOwn) {
  tracer t(small());
  std::barrier all_here(4);
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      write_from(t, i, 1);
      all_here.arrive_and_wait();
      write_from(t, i, kept - 1);
      all_here.arrive_and_wait();
    });
  for (auto& one : threads) one.join();
  auto all = t.read();
  EXPECT_EQ(all.records.size(), 4u * kept);
  EXPECT_EQ(all.lost, 0u);
}

TEST(Tracer, AThreadMayOutliveItsTracerAndTurnToAnother) {
  auto first = std::make_unique<tracer>(small());
  tracer second(small());
  std::thread([&] {
    first->write({.at_ns = 1});
    first.reset();
    write_from(second, 5, 2);
  }).join();
  EXPECT_EQ(second.read().records.size(), 2u);
}

}  // namespace
}  // namespace lethe

// After a request is gone, nothing of it is in any page, scratch or step buffer of any rank.

#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "tests/e2e/engine_run.hpp"
#include "tests/places.hpp"

namespace lethe::e2e {
namespace {

const std::filesystem::path tiny = std::filesystem::path(places::source) / "models/tiny";

size_t not_zero(bytes_view bytes) {
  return size_t(
      std::count_if(bytes.begin(), bytes.end(), [](std::byte b) { return b != std::byte{}; }));
}
size_t not_zero(const std::vector<bytes_view>& pieces) {
  size_t all = 0;
  for (bytes_view piece : pieces) all += not_zero(piece);
  return all;
}

bool holds_something(const shard& s, uint32_t pages) {
  for (uint32_t p = 0; p < pages; ++p)
    if (not_zero(s.page(p)) > 0) return true;
  return false;
}

/// Bytes that are not zero in all pages, scratches and step buffers.
size_t left_behind(const engine& e) {
  size_t left = not_zero(e.step_bytes());
  for (uint32_t r = 0; r < e.ranks().ranks(); ++r) {
    const shard& s = e.ranks().rank(r);
    left += not_zero(s.scratch());
    for (uint32_t p = 0; p < e.numbers().pages; ++p) left += not_zero(s.page(p));
  }
  return left;
}

std::vector<wanted> some_requests(uint32_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<wanted> all;
  for (uint32_t i = 0; i < count; ++i) {
    wanted w{.max_tokens = 1 + uint32_t(random() % 12), .choices = 1 + uint32_t(random() % 3)};
    for (uint32_t t = 1 + random() % 40; t > 0; --t) w.prompt.push_back(uint32_t(random() % 500));
    w.how = {.temperature = random() % 2 ? 1.0f : 0.0f,
             .top_p = random() % 2 ? 0.9f : 1.0f,
             .repetition_penalty = 1.1f,
             .seed = random()};
    all.push_back(std::move(w));
  }
  return all;
}

TEST(EngineForgets, AThousandRequestsLeaveEveryPageZero) {
  auto m = open(tiny);
  const engine_config ways[] = {{.ranks = {2, 2}, .threads = 1}, {.threads = 3}};
  for (engine_config c : ways) {
    c.page_tokens = 8, c.kv_bytes = 400'000;
    auto e = start(m, c);
    uint64_t wiped_before = count_arenas().bytes_wiped;
    for (uint32_t round = 0; round < 5; ++round)
      for (const auto& a : run_all(*e, some_requests(100, round), m.vocab()))
        EXPECT_GT(a.wiped.bytes, 0u);
    EXPECT_EQ(left_behind(*e), 0u);
    EXPECT_GT(e->numbers().pages_wiped, 1000u);
    EXPECT_GT(count_arenas().bytes_wiped, wiped_before);
  }
}

// The negative control: while a request lives, the same search finds it on every rank.
TEST(EngineForgets, TheSameSearchFindsALivingRequest) {
  auto m = open(tiny);
  auto e = start(m, {.ranks = {2, 2}, .threads = 1, .kv_bytes = 400'000});
  auto r = submit(*e, {.prompt = {1, 2, 3}, .max_tokens = 500}, m.vocab());
  while (r->choice(0).published < 5) std::this_thread::yield();
  for (uint32_t i = 0; i < e->ranks().ranks(); ++i)
    EXPECT_TRUE(holds_something(e->ranks().rank(i), e->numbers().pages)) << "rank " << i;
  e->cancel(*r);
  auto a = collect(*r);
  EXPECT_EQ(a.reasons[0], finish_reason::cancelled);
  EXPECT_EQ(left_behind(*e), 0u);
}

TEST(EngineForgets, CancelAtAnyStepLeavesNothing) {
  auto m = open(tiny);
  auto e = start(m, {.ranks = {1, 2}, .threads = 1, .kv_bytes = 400'000, .chunk_tokens = 3});
  for (uint32_t pause = 0; pause < 40; ++pause) {
    std::vector<std::unique_ptr<request>> sent;
    for (const auto& w : some_requests(8, pause)) sent.push_back(submit(*e, w, m.vocab()));
    std::this_thread::sleep_for(std::chrono::microseconds(pause * 50));
    for (auto& r : sent) e->cancel(*r);
    for (auto& r : sent) collect(*r);
    EXPECT_EQ(left_behind(*e), 0u) << "after " << pause * 50 << " microseconds";
  }
}

TEST(EngineForgets, EndingTheEngineEndsItsRequests) {
  auto m = open(tiny);
  auto e = start(m, small());
  auto r = submit(*e, {.prompt = {5, 6}, .max_tokens = 400}, m.vocab());
  e.reset();
  EXPECT_EQ(collect(*r).reasons[0], finish_reason::cancelled);
}

}  // namespace
}  // namespace lethe::e2e

#include "parallel/multiply.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <thread>

namespace lethe {
namespace {

constexpr uint32_t panel = panel_rows;

/// Set while a test runs: the thread that first takes panels of this weight is held up until others
/// have made all the rest, or for so long that nobody will.
struct hold_up {
  const matrix* of = nullptr;
  std::atomic<std::thread::id> whom = {};
  std::atomic<uint32_t> by_others = 0;
  uint32_t panels = 0;
  std::chrono::milliseconds at_most{0};
};
hold_up* held = nullptr;

/// Counts each row.
void count_rows(const matrix& w, const product_part& part, const activations&, float* y, size_t) {
  for (uint32_t r = part.row_begin; r < part.row_end; ++r) y[r - part.row_begin] += 1;
  if (held == nullptr || held->of != &w) return;
  uint32_t mine = (part.row_end - part.row_begin + panel - 1) / panel;
  std::thread::id nobody, me = std::this_thread::get_id();
  if (!held->whom.compare_exchange_strong(nobody, me)) {
    if (held->whom.load() != me) held->by_others += mine;
    return;
  }
  auto end = std::chrono::steady_clock::now() + held->at_most;
  while (held->by_others + mine < held->panels && std::chrono::steady_clock::now() < end)
    std::this_thread::yield();
}

cpu_row counting_row() {
  cpu_row row{};
  row.matmul = count_rows;
  return row;
}

struct rank_of_one {
  matrix weight{};
  std::vector<float> y;
  panel_queue queue{true};

  explicit rank_of_one(uint32_t rows) : y(rows) { weight.rows = rows; }
  void multiply(const cpu_row& row, std::span<panel_queue* const> others) {
    product p[] = {{&weight, {0, weight.rows}, {0, 1}, nullptr, y.data(), weight.rows}};
    auto at = queue.here();
    activations x{};
    queue.multiply(at, {row, p, x}, 2, others);
  }
};

/// Panels of the rank that is held up which the other one has made.
uint32_t helped(bool together, std::chrono::milliseconds at_most) {
  constexpr uint32_t panels = 300;
  rank_of_one slow(panels * panel - 3), fast(5 * panel);
  hold_up h{.of = &slow.weight, .panels = panels, .at_most = at_most};
  held = &h;
  cpu_row row = counting_row();
  panel_queue* of_slow[] = {&slow.queue};
  panel_queue* of_fast[] = {&fast.queue};
  auto others = [&](panel_queue*(&all)[1]) { return std::span(all, together ? 1 : 0); };
  std::thread first([&] { slow.multiply(row, others(of_fast)); });
  while (h.whom.load() == std::thread::id{}) std::this_thread::yield();
  fast.multiply(row, others(of_slow));
  first.join();
  held = nullptr;
  EXPECT_EQ(slow.y, std::vector<float>(slow.y.size(), 1));
  EXPECT_EQ(fast.y, std::vector<float>(fast.y.size(), 1));
  return h.by_others;
}

TEST(Multiply, WhoHasNothingLeftHelpsWhoIsHeldUp) {
  EXPECT_GT(helped(true, std::chrono::seconds(30)), 100u);
  EXPECT_EQ(helped(false, std::chrono::milliseconds(50)), 0u) << "the control";
}

/// Three ranks of two threads, whose products are of all sizes and of none, at their own pace.
TEST(Multiply, EveryPanelIsMadeOnceAndDoneWhenTheCallReturns) {
  constexpr uint32_t ranks = 3, threads = 2, turns = 2000;
  struct rank {
    matrix weights[2]{};
    std::vector<float> y[2];
    panel_queue queue{false};
    std::vector<panel_queue*> others;
    barrier meeting{threads, true};
  };
  std::vector<rank> all(ranks);
  for (rank& r : all)
    for (rank& other : all)
      if (&r != &other) r.others.push_back(&other.queue);
  cpu_row row = counting_row();
  std::atomic<uint32_t> wrong = 0;
  auto run = [&](uint32_t number, uint32_t thread) {
    rank& r = all[number];
    std::mt19937 random(number);
    auto at = r.queue.here();
    for (uint32_t turn = 0; turn < turns; ++turn) {
      uint32_t rows[] = {uint32_t(random() % 2000), uint32_t(random() % 40)};
      if (random() % 16 == 0) rows[0] = rows[1] = 0;
      if (thread == 0)
        for (int i : {0, 1}) r.y[i].assign(rows[i], 0), r.weights[i].rows = rows[i];
      r.meeting.wait();
      product p[] = {{&r.weights[0], {0, rows[0]}, {0, 1}, nullptr, r.y[0].data(), rows[0]},
                     {&r.weights[1], {0, rows[1]}, {0, 1}, nullptr, r.y[1].data(), rows[1]}};
      activations x{};
      r.queue.multiply(at, {row, p, x}, ranks * threads, r.others);
      for (const auto& y : r.y)
        for (float n : y) wrong += n != 1;
      r.meeting.wait();
    }
  };
  std::vector<std::thread> running;
  for (uint32_t n = 0; n < ranks * threads; ++n)
    running.emplace_back(run, n / threads, n % threads);
  for (auto& t : running) t.join();
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace lethe

#include "parallel/multiply.hpp"

#include <algorithm>

#include "runtime/base/check.hpp"

namespace lethe {
namespace {

range panels_under(range rows) {
  if (rows.size() == 0) return {};
  return {rows.begin / panel_rows, (rows.end + panel_rows - 1) / panel_rows};
}

/// Kernels are fastest with so many panels at once, and multiples.
constexpr uint32_t together = 4;

/// Of those that are left a thread takes many at first, which are long streams of memory, and few
/// in the end, so that nobody waits long for the last.
uint32_t panels_at_once(uint32_t left, uint32_t total, uint32_t threads) {
  if (threads == 1) return left;
  uint32_t some = std::clamp(left / (2 * threads), 1u, 16 * together);
  if (total < 2 * together * threads) return some;
  return std::min(left, std::max(some / together * together, together));
}

/// Panels of all products, laid end to end.
void multiply_panels(const cpu_row& row, std::span<const product> products, const activations& x,
                     range mine) {
  uint32_t first = 0;  // of the product, in the row of all panels
  for (const product& p : products) {
    range panels = panels_under(p.rows);
    uint32_t begin = std::max(mine.begin, first);
    uint32_t end = std::min(mine.end, first + panels.size());
    if (begin < end) {
      uint32_t row_begin = std::max(p.rows.begin, (panels.begin + begin - first) * panel_rows);
      uint32_t row_end = std::min(p.rows.end, (panels.begin + end - first) * panel_rows);
      float* y = p.y + (row_begin - p.rows.begin);
      row.matmul(*p.weight, {row_begin, row_end, p.of_segments.begin, p.of_segments.end}, x, y,
                 p.stride);
      if (p.bias) row.add_bias(p.bias + row_begin, y, p.stride, x.rows, row_end - row_begin);
    }
    first += panels.size();
  }
}

/// A turn's state in one word.
struct turn_state {
  static constexpr uint32_t count_bits = 20, turn_bits = 24;
  uint32_t turn, panels, taken;

  static turn_state of(uint64_t word) {
    constexpr uint64_t count = (1u << count_bits) - 1;
    return {uint32_t(word >> (2 * count_bits)), uint32_t(word >> count_bits & count),
            uint32_t(word & count)};
  }
  uint64_t word() const {
    return uint64_t{turn} << (2 * count_bits) | uint64_t{panels} << count_bits | taken;
  }
};

}  // namespace

multiplication::multiplication(const cpu_row& r, std::span<const product> p,
                               const activations& input)
    : row(r), products(p), x(input), panels(0) {
  for (const product& each : products) panels += panels_under(each.rows).size();
  check(panels < 1u << turn_state::count_bits);
}

panel_queue::place panel_queue::here() const {
  return {turn_state::of(state_.load(std::memory_order_acquire)).turn,
          done_.load(std::memory_order_acquire)};
}

void panel_queue::multiply(place& at, const multiplication& m, uint32_t threads,
                           std::span<panel_queue* const> others) {
  open(at, m);
  take(&m, threads);
  if (others.empty()) return;  // the rank's threads meet
  for (panel_queue* other : others) other->take(nullptr, threads);
  wait(at);
}

/// The first of the rank's threads does. Whose `m` the others are told does not matter: each stays
/// until all panels are done.
void panel_queue::open(place& at, const multiplication& m) {
  at.turn = (at.turn + 1) % (1u << turn_state::turn_bits);
  at.done += m.panels;
  uint64_t before = state_.load(std::memory_order_acquire);
  if (turn_state::of(before).turn == at.turn) return;
  now_.store(&m, std::memory_order_release);
  state_.compare_exchange_strong(before, turn_state{at.turn, m.panels, 0}.word(),
                                 std::memory_order_acq_rel);
}

/// Who has taken panels may look at what they are of: it stays until they are done.
void panel_queue::take(const multiplication* mine, uint32_t threads) {
  uint64_t word = state_.load(std::memory_order_acquire);
  for (turn_state s = turn_state::of(word); s.taken < s.panels; s = turn_state::of(word)) {
    uint32_t end = s.taken + panels_at_once(s.panels - s.taken, s.panels, threads);
    if (!state_.compare_exchange_weak(word, turn_state{s.turn, s.panels, end}.word(),
                                      std::memory_order_acq_rel, std::memory_order_acquire))
      continue;
    const multiplication& m = mine ? *mine : *now_.load(std::memory_order_acquire);
    multiply_panels(m.row, m.products, m.x, {s.taken, end});
    done_.fetch_add(end - s.taken, std::memory_order_release);
    finished_.advance();
    word = state_.load(std::memory_order_acquire);
  }
}

void panel_queue::wait(const place& at) {
  for (;;) {
    uint32_t seen = finished_.count();
    if (done_.load(std::memory_order_acquire) >= at.done) return;
    finished_.wait_past(seen, spin_);
  }
}

}  // namespace lethe

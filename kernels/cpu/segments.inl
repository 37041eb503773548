// Sums of segments on their way to the whole: one per panel and row of x.

#include <stddef.h>
#include <stdint.h>

#include "kernels/cpu/lanes_math.inl"
#include "kernels/cpu_row.hpp"

namespace lethe {
namespace {

/// Joins segments in the order ((0+1)+(2+3))+((4+5)+(6+7)), whichever of them a call has: a pair
/// with one of its halves elsewhere is that half. `active` is the segment being summed.
template <uint32_t N>
class segment_tree {
 public:
  void start(uint32_t count) {
    waiting_ = 0;
    clear(count);
  }
  lanes* active() { return sums_[active_]; }
  const lanes* active() const { return sums_[active_]; }
  /// Segment s is summed. After the last, active()[0..count) is the whole sum.
  void close(uint32_t s, bool last, uint32_t count) {
    uint32_t level = 0;
    for (; level < 3 && (last || s >> level & 1); level++) {
      if (waiting_ >> level & 1) join(level, count);
    }
    if (last) return;
    uint8_t summed = active_;
    active_ = held_[level];
    held_[level] = summed;
    waiting_ |= 1u << level;
    clear(count);
  }

 private:
  void clear(uint32_t count) {
    for (uint32_t i = 0; i < count; i++) sums_[active_][i] = zero();
  }
  void join(uint32_t level, uint32_t count) {
    const lanes* first = sums_[held_[level]];
    lanes* second = active();
    for (uint32_t i = 0; i < count; i++) second[i] = add(first[i], second[i]);
    waiting_ &= ~(1u << level);
  }

  lanes sums_[4][N];
  uint8_t active_ = 3;
  uint8_t held_[3] = {0, 1, 2};  // a finished pair, four or eight's first half waits for its second
  uint32_t waiting_ = 0;         // bit l: held_[l] is in use
};

/// Weights are asked for this many bytes before their use: about 100 ns of one core's reading.
inline constexpr uint32_t fetch_ahead = 1024;

/// Lanes of panel p that the part asks for: [begin, end).
struct lane_range {
  uint32_t begin, end;
};
inline lane_range lanes_asked(const product_part& part, uint32_t p) {
  uint32_t first = p * panel_rows;
  uint32_t begin = part.row_begin > first ? part.row_begin - first : 0;
  uint32_t end = part.row_end - first < panel_rows ? part.row_end - first : panel_rows;
  return {begin, end};
}

/// `y` is where the part's first output of one row of x lies.
inline void store_panel(const product_part& part, uint32_t p, lanes v, float* y) {
  lane_range r = lanes_asked(part, p);
  if (r.begin == 0) return store_partial(y + (p * panel_rows - part.row_begin), v, r.end);
  float all[panel_rows];
  store(all, v);
  for (uint32_t i = r.begin; i < r.end; i++) y[p * panel_rows + i - part.row_begin] = all[i];
}

}  // namespace
}  // namespace lethe

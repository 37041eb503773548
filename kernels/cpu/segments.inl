// Sums of segments on their way to the whole: one per panel and row of x.

#include <stddef.h>
#include <stdint.h>

#include "kernels/cpu/lanes_math.inl"
#include "kernels/cpu_row.hpp"

namespace lethe {
namespace {

/// Joins segments in the order ((0+1)+(2+3))+((4+5)+(6+7)), whichever of them a call has: a pair
/// with one of its halves elsewhere is that half. Some lanes may be further than others.
template <uint32_t N>
class segment_tree {
 public:
  /// For `count` sums over segments [first, end).
  void start(uint32_t first, uint32_t end, uint32_t count) {
    last_ = end - 1;
    uint8_t waiting = 0;
    for (uint32_t s = 0; s < segments; s++) {
      waiting_[s] = waiting;
      uint32_t level = level_of(s);
      if (s >= first) waiting = uint8_t(waiting >> level << level | 1u << level);
    }
    for (uint32_t i = 0; i < count; i++) active_[i] = zero();
  }
  /// The segment being summed; after the last one is closed, the whole sum.
  lanes* active() { return active_; }
  const lanes* active() const { return active_; }
  /// Lanes [begin, end) of segment s are summed.
  void close(uint32_t s, uint32_t begin, uint32_t end) {
    uint32_t level = s == last_ ? 3 : level_of(s);
    for (uint32_t l = 0; l < level; l++) {
      if (waiting_[s] >> l & 1) join(held_[l] + begin, active_ + begin, end - begin);
    }
    if (s != last_) hand_over(active_ + begin, held_[level] + begin, end - begin);
  }

 private:
  /// So many sums may wait for segment s to be joined with it.
  static uint32_t level_of(uint32_t s) { return uint32_t(__builtin_ctz(~s)); }
  static void join(const lanes* first, lanes* second, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) second[i] = add(first[i], second[i]);
  }
  static void hand_over(lanes* from, lanes* to, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) to[i] = from[i], from[i] = zero();
  }

  lanes active_[N];
  lanes held_[3][N];  // one segment, two or four wait for the other half
  uint32_t last_;
  uint8_t waiting_[segments];  // before each segment; bit l: held_[l] is in use
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

// Sums of segments on their way to the whole: one per panel and row of x.

#include <stddef.h>
#include <stdint.h>

#include "kernels/cpu/lanes_math.inl"
#include "kernels/cpu_row.hpp"

namespace lethe {
namespace {

/// Joins the segments of N sums in the order ((0+1)+(2+3))+((4+5)+(6+7)), whichever of them a call
/// has: a pair with one of its halves elsewhere is that half. Some sums may be further than others.
template <uint32_t N>
class segment_tree {
 public:
  /// For segments [first, end).
  segment_tree(uint32_t first, uint32_t end) : last_(end - 1) {
    uint8_t waiting = 0;
    for (uint32_t s = 0; s < segments; s++) {
      waiting_[s] = waiting;
      uint32_t level = level_of(s);
      if (s >= first) waiting = uint8_t(waiting >> level << level | 1u << level);
    }
  }
  /// Where numbers from `at` on of segment s are summed. Anything may lie there before. After the
  /// last segment is closed, there is the whole.
  lanes* sums(uint32_t s, uint32_t at) {
    return (s != last_ && level_of(s) == 0 ? held_[0] : active_) + at;
  }
  /// Numbers [at, at + count) of segment s are summed.
  void close(uint32_t s, uint32_t at, uint32_t count) {
    lanes *mine = sums(s, at), *to = joined(s, at);
    uint32_t left = joins_of(s);
    if (left == 0 && to != mine) copy(mine, to, count);
    for (; left != 0; left &= left - 1) {
      bool last = (left & (left - 1)) == 0;
      join(held_[__builtin_ctz(left)] + at, mine, last ? to : mine, count);
    }
  }
  /// The same of Count numbers that are still in registers, and stay there: to wait where `joined`
  /// says.
  template <uint32_t Count>
  [[gnu::always_inline]] void join(uint32_t s, uint32_t at, lanes* own) const {
    for (uint32_t left = joins_of(s); left != 0; left &= left - 1) {
      const lanes* before = held_[__builtin_ctz(left)] + at;
#pragma GCC unroll 32
      for (uint32_t i = 0; i < Count; i++) own[i] = add(before[i], own[i]);
    }
  }
  lanes* joined(uint32_t s, uint32_t at) {
    return s == last_ ? sums(s, at) : held_[level_of(s)] + at;
  }

 private:
  /// So many sums may wait for segment s to be joined with it.
  static uint32_t level_of(uint32_t s) { return uint32_t(__builtin_ctz(~s)); }
  /// Levels whose sums segment s is joined with, a bit each.
  uint32_t joins_of(uint32_t s) const {
    uint32_t level = s == last_ ? 3 : level_of(s);
    return waiting_[s] & ((1u << level) - 1);
  }
  static void copy(const lanes* from, lanes* to, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) to[i] = from[i];
  }
  static void join(const lanes* first, const lanes* second, lanes* to, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) to[i] = add(first[i], second[i]);
  }

  lanes active_[N];   // of a segment that others wait for
  lanes held_[3][N];  // one segment, two or four wait for the other half
  const uint32_t last_;
  uint8_t waiting_[segments];  // before each segment; bit l: held_[l] is in use
};

enum class cache : uint8_t { none, first, second };

/// What a segment's sums begin from: to clear as many would be as many stores more.
constinit const lanes no_sums[32] = {};

/// How many a part has where parts are as equal as can be, and have `most` at most.
inline uint32_t equal_parts(uint32_t count, uint32_t most) {
  uint32_t parts = (count + most - 1) / most;
  return (count + parts - 1) / parts;
}

/// How a processor takes weights best.
struct weight_ways {
  cache into;         // which they are asked for into
  bool few_unasked;   // it reads one or two rows' weights faster unasked
  bool apart_beside;  // numbers are taken apart beside the pipes that multiply
  constexpr cache asked_into(uint32_t rows) const {
    return few_unasked && rows <= 2 ? cache::none : into;
  }
};
inline constexpr weight_ways common_ways{cache::first, false, false};
inline constexpr weight_ways zen3_ways{cache::first, true, false};
/// More lines can be on their way to the second cache than to the first.
inline constexpr weight_ways zen4_ways{cache::second, true, true};

/// Asks for weights this long before their use.
template <cache into>
[[gnu::always_inline]] inline void fetch_ahead(const uint8_t* p) {
  if constexpr (into == cache::none) return;
  __builtin_prefetch(p + 2048, 0, into == cache::first ? 3 : 2);
}

/// Weights that come next, of panels `stride` apart, asked for evenly while others are multiplied:
/// many at once come later (decisions/0058), or too early (0061).
class lines_evenly {
 public:
  lines_evenly() = default;
  lines_evenly(const uint8_t* from, uint32_t bytes, uint32_t steps, size_t stride = 0)
      : at_(from),
        stride_(stride),
        a_step_(steps == 0 ? 0 : (bytes * whole / 64 + steps - 1) / steps) {}
  template <cache into, uint32_t P = 1>
  [[gnu::always_inline]] void step() {
    for (due_ += a_step_; due_ >= whole; due_ -= whole, at_ += 64) {
#pragma GCC unroll 4
      for (uint32_t p = 0; p < P; p++)
        __builtin_prefetch(at_ + p * stride_, 0, into == cache::first ? 3 : 2);
    }
  }

 private:
  static constexpr uint32_t whole = 256;
  const uint8_t* at_ = nullptr;
  size_t stride_ = 0;
  uint32_t a_step_ = 0, due_ = 0;  // parts of a line, `whole` of them one
};

/// Lanes of panel p that the part asks for: [begin, end).
struct lane_range {
  uint32_t begin, end;
  bool whole() const { return begin == 0 && end == panel_rows; }
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
  if (r.whole()) return store(y + (p * panel_rows - part.row_begin), v);
  if (r.begin == 0) return store_partial(y + (p * panel_rows - part.row_begin), v, r.end);
  float all[panel_rows];
  store(all, v);
  for (uint32_t i = r.begin; i < r.end; i++) y[p * panel_rows + i - part.row_begin] = all[i];
}

/// Every `step`th panel from `begin` on, from K's begin on, and where their outputs go: row r of x
/// from y + r * y_stride on.
struct panel_group {
  const uint8_t* first;
  size_t stride;  // bytes from one to the next
  uint32_t begin, step, count;
  float* y;
  size_t y_stride;
  const uint8_t* panel(uint32_t p) const { return first + p * stride; }
};

/// Stores rows [begin, begin + count) of a group's outputs: the sums are [panel][row].
inline void store_tile(const product_part& part, const panel_group& group, uint32_t begin,
                       uint32_t count, const lanes* sums) {
  float* y = group.y + begin * group.y_stride;
  uint32_t last = group.begin + (group.count - 1) * group.step;
  bool whole = lanes_asked(part, group.begin).whole() && lanes_asked(part, last).whole();
  for (uint32_t r = 0; r < count; r++, y += group.y_stride) {
    for (uint32_t p = 0; p < group.count; p++) {
      uint32_t panel = group.begin + p * group.step;
      lanes sum = sums[p * count + r];
      if (whole)
        store(y + (panel * panel_rows - part.row_begin), sum);
      else
        store_panel(part, panel, sum, y);
    }
  }
}
/// Asks for where store_tile will store, to write it, of panels side by side. Inlined always: g++
/// takes a call that only asks for memory for one without effect.
[[gnu::always_inline]] inline void fetch_tile(const product_part& part, const panel_group& group,
                                              uint32_t begin, uint32_t count) {
  ptrdiff_t column = ptrdiff_t{group.begin * panel_rows} - ptrdiff_t{part.row_begin};
  const float* y = group.y + begin * group.y_stride + column;
  for (uint32_t r = 0; r < count; r++, y += group.y_stride) {
    for (uint32_t p = 0; p < group.count; p++) __builtin_prefetch(y + p * panel_rows, 1);
  }
}

}  // namespace
}  // namespace lethe

#include "runtime/batch/drawing.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "runtime/base/check.hpp"
#include "runtime/batch/logits.hpp"

namespace lethe {

namespace {

constexpr size_t whole(size_t n) { return draw_blocks(n) * draw_block; }

}  // namespace

sampler_scratch::sampler_scratch(uint32_t vocab, std::pmr::memory_resource* memory)
    : vocab_(vocab),
      x_(whole(vocab), memory),
      w_(whole(vocab), memory),
      sums_(draw_blocks(vocab), memory),
      ids_(vocab, memory),
      places_(whole(vocab), memory) {}

size_t sampler_scratch::bytes(uint32_t vocab) {
  constexpr size_t alignments = 5 * alignof(std::max_align_t);
  return vocab * sizeof(uint32_t) + whole(vocab) * (2 * sizeof(float) + sizeof(uint32_t)) +
         draw_blocks(vocab) * sizeof(float) + alignments;
}

void sampler_scratch::wipe() {
  for (auto* room : {&x_, &w_, &sums_}) room->wipe();
  for (auto* room : {&ids_, &places_}) room->wipe();
}

namespace {

uint32_t first_allowed(const uint64_t* allowed, size_t vocab) {
  for (size_t id = 0; id < vocab; ++id)
    if (allowed[id / 64] >> id % 64 & 1) return uint32_t(id);
  check(false);
  return 0;
}

}  // namespace

/// One draw: what may still be drawn has its weight, what may not has none.
class drawing {
 public:
  drawing(const draw_row& row, sampler_scratch& room) : room_(room), row_(row) {}

  /// The largest logit's place; 0 where none is above -inf.
  size_t likeliest(std::span<const float> logits) {
    auto maxima = room_.maxima();
    row_.maxima(logits.data(), logits.size(), maxima.data());
    return index_of_largest(logits, maxima);
  }

  void weigh(std::span<const float> logits, float largest, float temperature) {
    shape(draw_blocks(logits.size()));
    weighted_ = row_.weigh(logits.data(), logits.size(), largest, temperature, x_.data(), w_.data(),
                           sums_.data());
    add_up();
  }

  /// Of the k most likely, the lowest ids among equals; k is less than there are. The likeliest
  /// of each block were left in `sums`: where k of them reach it, k or more of all do.
  void weigh_top(std::span<const float> logits, uint32_t k, float largest, float temperature) {
    auto maxima = room_.maxima();
    if (k > maxima.size()) {
      weigh(logits, largest, temperature);
      cut(0, {.count = k});
      weighted_ = row_.weighted(x_.data(), w_.data(), blocks_);
      return;
    }
    std::nth_element(maxima.begin(), maxima.begin() + k - 1, maxima.end(), std::greater<>());
    auto places = at_least(logits, maxima[k - 1]);
    auto likelier = [&](uint32_t a, uint32_t b) {
      return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
    };
    if (k < places.size()) {
      std::ranges::nth_element(places, places.begin() + k, likelier);
      places = places.first(k);
      std::ranges::sort(places);
    }
    auto ids = room_.ids_.first(places.size());
    // No place is written that is still to be read, where x is what the logits are in.
    auto theirs = room_.x_.first(places.size());
    for (size_t i = 0; i < places.size(); ++i) ids[i] = places[i], theirs[i] = logits[places[i]];
    weigh(theirs, largest, temperature);
    ids_ = ids;
  }

  /// Meister et al., "Locally typical sampling": those whose surprise is nearest to the expected
  /// one, until they hold `share`. The expected x tells as much as the expected surprise.
  void keep_typical(double share) { cut(float(weighted_ / total_), {.weight = share * total_}); }

  void keep_top(double share) { cut(0, {.weight = share * total_}); }

  void keep_heavy(float of_largest) {
    row_.maxima(w_.data(), w_.size(), sums_.data());
    row_.drop_light(blocks_, of_largest * std::ranges::max(sums_), w_.data(), sums_.data());
    add_up();
  }

  /// The id where the sum of weights passes u of the total; never one without a weight.
  uint32_t id_at(double u) const {
    double goal = u * total_, sum = 0;
    size_t block = 0, last = 0;
    for (size_t b = 0; b < blocks_; ++b) {
      if (sums_[b] == 0) continue;
      block = b;
      if (sum + double(sums_[b]) > goal) break;
      sum += double(sums_[b]);
    }
    for (size_t i = block * draw_block; i < (block + 1) * draw_block; ++i) {
      if (w_[i] == 0) continue;
      last = i;
      if ((sum += double(w_[i])) > goal) break;
    }
    return id_of(last);
  }

 private:
  uint32_t id_of(size_t place) const { return ids_.empty() ? uint32_t(place) : ids_[place]; }

  void shape(size_t blocks) {
    blocks_ = blocks;
    x_ = room_.x_.first(blocks * draw_block);
    w_ = room_.w_.first(blocks * draw_block);
    sums_ = room_.sums_.first(blocks);
  }

  void add_up() {
    total_ = 0;
    for (float sum : sums_) total_ += double(sum);
  }

  void drop_far(float to, float least) {
    row_.drop_far(x_.data(), to, blocks_, least, w_.data(), sums_.data());
    add_up();
  }

  /// Where logits reach `bar` and are above -inf.
  std::span<uint32_t> at_least(std::span<const float> logits, float bar) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    bar = std::max(bar, std::numeric_limits<float>::lowest());
    auto room = room_.places_.first(logits.size());
    size_t blocks = logits.size() / draw_block;
    size_t found = row_.find(logits.data(), blocks, bar, infinity, room.data());
    for (size_t i = blocks * draw_block; i < logits.size(); ++i)
      if (logits[i] >= bar) room[found++] = uint32_t(i);
    return room.first(found);
  }

  /// Keeps those whose x is nearest to one, as many as it takes; among equals the likelier, then
  /// the lowest ids.
  void cut(float to, draw_goal goal) {
    draw_cut c{.from_low = {total_, blocks_ * draw_block}};
    while (c.goes_on()) {
      // The middle, and what the next middle may be, so that one pass serves two steps.
      float middle = c.middle();
      draw_keys at = {middle, c.middle_of(c.low, middle), c.middle_of(middle, c.high)};
      draw_masses from;
      row_.mass_from(x_.data(), to, w_.data(), blocks_, at, from);
      c.take(middle, from[0], goal);
      size_t next = c.low == middle ? 2 : 1;
      if (c.goes_on()) c.take(at[next], from[next], goal);
    }
    auto places = room_.places_.first(c.from_low.count - c.from_high.count);
    places = places.first(row_.find_near(x_.data(), to, blocks_, c.low, c.high, places.data()));
    settle(to, places, c.from_high, goal);
  }

  /// The last steps of a cut: `places` hold those in question, `so_far` is what comes before them.
  void settle(float to, std::span<uint32_t> places, draw_mass so_far, draw_goal goal) {
    auto key = [&](uint32_t place) { return -std::fabs(x_[place] - to); };
    auto first = [&](uint32_t a, uint32_t b) {
      if (key(a) != key(b)) return key(a) > key(b);
      return x_[a] != x_[b] ? x_[a] > x_[b] : a < b;
    };
    if (!std::ranges::is_sorted(places, first)) std::ranges::sort(places, first);
    size_t kept = 0;
    while (kept < places.size() && !goal.reached_by(so_far)) {
      so_far.weight += double(w_[places[kept++]]);
      ++so_far.count;
    }
    if (kept == 0) return;
    float least = key(places[kept - 1]);
    for (; kept < places.size() && key(places[kept]) == least; ++kept) w_[places[kept]] = 0;
    drop_far(to, least);
    if (moves_together(so_far.count, blocks_)) move_together();
  }

  /// Those with a weight come first, in order, and nothing after them.
  void move_together() {
    auto places = room_.places_.first(blocks_ * draw_block);
    size_t left =
        row_.find(w_.data(), blocks_, std::numeric_limits<float>::min(), 2, places.data());
    auto ids = room_.ids_.first(left);
    for (size_t i = 0; i < left; ++i) {
      ids[i] = id_of(places[i]);
      x_[i] = x_[places[i]];
      w_[i] = w_[places[i]];
    }
    ids_ = ids;
    shape(draw_blocks(left));
    std::fill(x_.begin() + ptrdiff_t(left), x_.end(), draw_below_all);
    drop_far(0, draw_x_least);
  }

  sampler_scratch& room_;
  const draw_row& row_;
  std::span<const uint32_t> ids_;  // empty: each place is its own id
  size_t blocks_ = 0;
  std::span<float> x_, w_, sums_;
  double total_ = 0;     // of weights
  double weighted_ = 0;  // x * w, before any cut by another key
};

uint32_t draw(const draw_row& row, std::span<const float> logits, const row_draw& how,
              sampler_scratch& room, const uint64_t* allowed) {
  drawing d(row, room);
  size_t likeliest = d.likeliest(logits);
  float largest = logits[likeliest];
  if (!(largest > logit_lowest)) return allowed ? first_allowed(allowed, logits.size()) : 0;
  if (takes_likeliest(how, largest)) return uint32_t(likeliest);
  if (how.top_k == 0 || how.top_k >= logits.size())
    d.weigh(logits, largest, how.temperature);
  else
    d.weigh_top(logits, how.top_k, largest, how.temperature);
  if (how.typical_p < 1) d.keep_typical(how.typical_p);
  if (how.top_p < 1) d.keep_top(how.top_p);
  if (how.min_p > 0) d.keep_heavy(how.min_p);
  return d.id_at(how.u);
}

}  // namespace lethe

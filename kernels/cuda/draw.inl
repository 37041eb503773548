#pragma once

#include "kernels/cuda/draw_passes.inl"

namespace lethe::device {

/// One row's draw, as the host's (runtime/batch/drawing.cpp): what may still be drawn has its
/// weight, what may not has none. Distances are not stored, but computed from the logits again.
template <class Block>
class row_drawing {
 public:
  LETHE_BODY row_drawing(Block& b, const device_draws& d, const row_draw& h, uint32_t turn)
      : passes_(b, d.vocab),
        how_(h),
        logits_(d.logits + h.row * d.stride),
        w_(d.weights + turn * draw_whole(d.vocab)),
        places_(d.places + turn * 2 * draw_whole(d.vocab)),
        second_(places_ + draw_whole(d.vocab)),
        vocab_(d.vocab) {}

  LETHE_BODY uint32_t id() {
    uint32_t likeliest = find_likeliest();
    if (likeliest == none) return 0;
    if (takes_likeliest(how_, largest_)) return likeliest;
    warmth_ = 1.0f / how_.temperature;
    if (how_.top_k == 0 || how_.top_k >= vocab_)
      weigh(vocab_);
    else
      weigh_top();
    if (how_.typical_p < 1.0f) keep_typical();
    if (how_.top_p < 1.0f) cut(by_x(), {double(how_.top_p) * total_, 0});
    if (how_.min_p > 0.0f) keep_heavy();
    return id_at(how_.u);
  }

 private:
  static constexpr uint32_t threads = draw_layout::threads, none = UINT32_MAX;
  static constexpr float lowest = -0x1.fffffep127f, least_weight = 0x1p-126f;

  LETHE_BODY uint32_t thread() const { return passes_.block.thread(); }
  LETHE_BODY void barrier() { passes_.block.barrier(); }

  LETHE_BODY float infinity() const { return from_bits(0x7f800000); }
  LETHE_BODY uint32_t id_of(uint32_t place) const { return ids_ == nullptr ? place : ids_[place]; }
  /// (logit - largest) / temperature, as draw_row's weigh has it; nothing is at places from
  /// count_ on.
  LETHE_BODY float x_at(uint32_t place) const {
    if (place >= count_) return rest_;
    float logit = logits_[id_of(place)];
    if (!(logit < largest_)) return logit != logit ? float(draw_x_least) : 0.0f;
    return greater_of((logit - largest_) * warmth_, draw_x_least);
  }
  LETHE_BODY auto by_x() const {
    return [this](uint32_t place) { return x_at(place); };
  }

  /// The first of the largest, `none` if none is above -inf. The largest of each block stay.
  LETHE_BODY uint32_t find_likeliest() {
    passes_.blocks = uint32_t(draw_blocks(vocab_));
    passes_.maxima(passes_.some,
                   [this](uint32_t i) { return i < vocab_ ? logits_[i] : -infinity(); });
    largest_ = -infinity();
    for (uint32_t b = thread(); b < passes_.blocks; b += threads)
      largest_ = greater_of(passes_.block.get(passes_.some + b), largest_);
    largest_ = passes_.greatest(largest_);
    if (!(largest_ > -infinity())) return none;
    uint32_t first = none;
    for (uint32_t b = thread(); b < passes_.blocks; b += threads)
      if (passes_.block.get(passes_.some + b) == largest_) first = least_of(first, b);
    first = passes_.least(first);
    uint32_t place = first * uint32_t(draw_block) + thread();
    bool here = thread() < draw_block && place < vocab_ && logits_[place] == largest_;
    return passes_.least(here ? place : none);
  }

  /// Everything has its weight: `count` ids, all or those that lie together.
  LETHE_BODY void weigh(uint32_t count) {
    shape(count, draw_x_least);
    passes_.add_blocks(passes_.sums,
                       [this](uint32_t place) { return w_[place] = two_to(x_at(place) * log2_e); });
    total_ = passes_.total_of(passes_.sums);
  }
  LETHE_BODY void shape(uint32_t count, float rest) {
    count_ = count;
    rest_ = rest;
    passes_.blocks = uint32_t(draw_blocks(count));
  }

  LETHE_BODY void weigh_top() {
    uint32_t k = how_.top_k;
    if (k > passes_.blocks) {
      weigh(vocab_);
      return cut(by_x(), {0, k});
    }
    float bar = greater_of(reached_by_blocks(k), lowest);
    auto reaches = [this, bar](uint32_t i) { return i < vocab_ && logits_[i] >= bar; };
    uint32_t found = passes_.find(places_, reaches);
    if (found > k) {
      auto likelier = [this](uint32_t a, uint32_t b) {
        return logits_[a] != logits_[b] ? logits_[a] > logits_[b] : a < b;
      };
      passes_.sort(places_, found, likelier);
      uint32_t last = places_[k - 1];
      barrier();
      found = passes_.find(places_, [this, last, likelier](uint32_t i) {
        return i < vocab_ && (i == last || likelier(i, last));
      });
    }
    take_places();
    weigh(found);
  }
  /// What k of the blocks' largest logits reach, and no larger number.
  LETHE_BODY float reached_by_blocks(uint32_t k) {
    Block& b = passes_.block;
    barrier();
    for (uint32_t mine = thread(); mine < passes_.blocks; mine += threads) {
      float most = b.get(passes_.some + mine);
      uint32_t before = 0;
      for (uint32_t other = 0; other < passes_.blocks; other++) {
        float its = b.get(passes_.some + other);
        before += its > most || (its == most && other < mine);
      }
      if (before == k - 1) b.put(passes_.told, most);
    }
    barrier();
    return b.get(passes_.told);
  }
  /// The list of places becomes that of ids.
  LETHE_BODY void take_places() {
    uint32_t* other = ids_ == nullptr ? second_ : ids_;
    ids_ = places_;
    places_ = other;
  }

  LETHE_BODY void keep_typical() {
    passes_.add_blocks(passes_.some, [this](uint32_t i) { return x_at(i) * w_[i]; });
    float expected = float(passes_.total_of(passes_.some) / total_);
    auto nearness = [this, expected](uint32_t i) { return 0.0f - absolute(x_at(i) - expected); };
    cut(nearness, {double(how_.typical_p) * total_, 0});
  }

  LETHE_BODY void keep_heavy() {
    float most = 0.0f;
    for (uint32_t i = thread(); i < passes_.blocks * draw_block; i += threads)
      most = greater_of(w_[i], most);
    drop([this](uint32_t i) { return w_[i]; }, how_.min_p * passes_.greatest(most));
  }

  template <class Key>
  LETHE_BODY void cut(Key key, const draw_goal& goal) {
    draw_cut c{.from_low = {total_, passes_.blocks * draw_block}};
    while (c.goes_on()) c.take(c.middle(), mass_from(key, c.middle()), goal);
    uint32_t found = passes_.find(places_, [key, low = c.low, high = c.high](uint32_t i) {
      float here = key(i);
      return !(here < low) && here < high;
    });
    settle(key, found, c.from_high, goal);
  }
  template <class Key>
  LETHE_BODY draw_mass mass_from(Key key, float least) {
    uint32_t count = 0;
    passes_.add_blocks(passes_.some, [&](uint32_t i) {
      bool lighter = key(i) < least;
      count += !lighter;
      return lighter ? 0.0f : w_[i];
    });
    double weight = passes_.total_of(passes_.some);
    return {weight, passes_.added(count)};
  }

  /// Of the places in question the first in order stay, until with them, and what comes before
  /// them, there is enough.
  template <class Key>
  LETHE_BODY void settle(Key key, uint32_t found, const draw_mass& so_far, const draw_goal& goal) {
    passes_.sort(places_, found, [this, key](uint32_t a, uint32_t b) {
      float of_a = key(a), of_b = key(b);
      if (of_a != of_b) return of_a > of_b;
      of_a = x_at(a), of_b = x_at(b);
      return of_a != of_b ? of_a > of_b : a < b;
    });
    barrier();
    if (thread() == 0) passes_.block.put_word(passes_.told, taken(found, so_far, goal));
    barrier();
    uint32_t kept = passes_.block.get_word(passes_.told);
    if (kept == 0) return;
    float least = key(places_[kept - 1]);
    for (uint32_t i = kept + thread(); i < found; i += threads)
      if (key(places_[i]) == least) w_[places_[i]] = 0.0f;
    barrier();
    drop(key, least);
    if (moves_together(so_far.count + kept, passes_.blocks)) move_together();
  }
  LETHE_BODY uint32_t taken(uint32_t found, draw_mass so_far, const draw_goal& goal) const {
    uint32_t kept = 0;
    while (kept < found && !goal.reached_by(so_far)) {
      so_far.weight += double(w_[places_[kept++]]);
      ++so_far.count;
    }
    return kept;
  }

  template <class Key>
  LETHE_BODY void drop(Key key, float least) {
    passes_.add_blocks(passes_.sums, [this, key, least](uint32_t i) {
      float kept = key(i) < least ? 0.0f : w_[i];
      return w_[i] = kept;
    });
    total_ = passes_.total_of(passes_.sums);
  }

  /// What has a weight comes first, in order, and nothing after it. No place is written that
  /// another thread still reads: what moves comes from further on.
  LETHE_BODY void move_together() {
    uint32_t left = passes_.find(places_, [this](uint32_t i) { return w_[i] >= least_weight; });
    for (uint32_t begin = 0; begin < left; begin += threads) {
      uint32_t i = begin + thread(), place = i < left ? places_[i] : 0;
      float weight = i < left ? w_[place] : 0.0f;
      barrier();
      if (i >= left) continue;
      w_[i] = weight;
      places_[i] = id_of(place);
    }
    barrier();
    take_places();
    shape(left, draw_below_all);
    drop(by_x(), draw_x_least);
  }

  /// Where the sum of weights passes u of the total; never where none is.
  LETHE_BODY uint32_t id_at(double u) {
    Block& b = passes_.block;
    double goal = u * total_, sum = 0;
    uint32_t in = 0, last = 0;
    barrier();
    if (thread() == 0) {
      for (uint32_t at = 0; at < passes_.blocks; at++) {
        double here = double(b.get(passes_.sums + at));
        if (here == 0) continue;
        in = at;
        if (sum + here > goal) break;
        sum += here;
      }
      b.put_word(passes_.told, in);
    }
    barrier();
    uint32_t begin = b.get_word(passes_.told) * uint32_t(draw_block);
    if (thread() < draw_block) b.put(passes_.some + thread(), w_[begin + thread()]);
    barrier();
    for (uint32_t i = 0; thread() == 0 && i < draw_block; i++) {
      double here = double(b.get(passes_.some + i));
      if (here == 0) continue;
      last = i;
      if ((sum += here) > goal) break;
    }
    return id_of(begin + last);
  }

  draw_passes<Block> passes_;
  const row_draw how_;
  const float* const logits_;
  float* const w_;
  uint32_t *places_, *const second_;
  uint32_t* ids_ = nullptr;  // of what lies together; null: each place is its own id
  const uint32_t vocab_;
  uint32_t count_ = 0;
  float rest_ = 0, largest_ = 0, warmth_ = 0;
  double total_ = 0;
};

/// A block a draw.
struct draw_rows {
  static constexpr uint32_t threads = draw_layout::threads;
  device_draws d;

  launch_shape shape() const { return {d.count, 1, draw_layout::shared_words(d.vocab)}; }

  template <class Block>
  LETHE_BODY void operator()(Block& block) const {
    uint32_t turn = block.x();
    uint32_t id = row_drawing<Block>(block, d, d.draws[turn], turn).id();
    if (block.thread() == 0) d.ids[turn] = id;
  }
};

}  // namespace lethe::device

#include "runtime/batch/sampler.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "kernels/cpu_row.hpp"
#include "runtime/base/check.hpp"
#include "runtime/batch/counter_rng.hpp"
#include "runtime/batch/logits.hpp"

namespace lethe {

namespace {

constexpr size_t whole(size_t n) { return draw_blocks(n) * draw_block; }

}  // namespace

sampler_scratch::sampler_scratch(uint32_t vocab, std::pmr::memory_resource* memory)
    : vocab_(vocab),
      logits_(vocab, memory),
      x_(whole(vocab), memory),
      w_(whole(vocab), memory),
      keys_(whole(vocab), memory),
      sums_(draw_blocks(vocab), memory),
      ids_(vocab, memory),
      places_(whole(vocab), memory) {}

size_t sampler_scratch::bytes(uint32_t vocab) {
  constexpr size_t alignments = 7 * alignof(std::max_align_t);
  return vocab * (sizeof(float) + sizeof(uint32_t)) +
         whole(vocab) * (3 * sizeof(float) + sizeof(uint32_t)) +
         draw_blocks(vocab) * sizeof(float) + alignments;
}

void sampler_scratch::wipe() {
  for (auto* room : {&logits_, &x_, &w_, &keys_, &sums_}) room->wipe();
  for (auto* room : {&ids_, &places_}) room->wipe();
}

namespace {

void penalize(std::span<float> logits, const sampling& how, const token_counts& counts) {
  counts.for_each([&logits, &how](const token_counts::entry& e) {
    check(e.id < logits.size());
    float& logit = logits[e.id];
    logit = logit > 0 ? logit / how.repetition_penalty : logit * how.repetition_penalty;
    if (e.output > 0) logit -= how.presence_penalty + how.frequency_penalty * float(e.output);
  });
}

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
  explicit drawing(sampler_scratch& room) : room_(room), row_(best_cpu_row().draw) {}

  /// The logits to draw from: as they came, or changed in the scratch.
  std::span<const float> adjusted(std::span<const float> logits, const sampling& how,
                                  const token_counts& counts, const uint64_t* allowed) {
    bool penalized = needs_counts(how) && counts.distinct() > 0;
    bool plain = !penalized && how.bias.empty();
    if (plain && !allowed) return logits;
    std::span<float> changed = room_.logits_.first(logits.size());
    if (!plain) {
      std::copy(logits.begin(), logits.end(), changed.begin());
      if (penalized) penalize(changed, how, counts);
      for (const logit_bias& b : how.bias) changed[b.id] += b.bias;
      logits = changed;
    }
    if (allowed) row_.allow(logits.data(), allowed, logits.size(), changed.data());
    return changed;
  }

  /// The largest logit's place; 0 where none is above -inf.
  size_t likeliest(std::span<const float> logits) {
    auto maxima = room_.sums_.first(draw_blocks(logits.size()));
    row_.maxima(logits.data(), logits.size(), maxima.data());
    return index_of_largest(logits, maxima);
  }

  void weigh(std::span<const float> logits, float largest, float temperature) {
    shape(draw_blocks(logits.size()));
    row_.weigh(logits.data(), logits.size(), largest, temperature, x_.data(), w_.data(),
               sums_.data());
    add_up();
  }

  /// Of the k most likely, the lowest ids among equals; k is less than there are. The likeliest
  /// of each block were left in `sums`: where k of them reach it, k or more of all do.
  void weigh_top(std::span<const float> logits, uint32_t k, float largest, float temperature) {
    auto maxima = room_.sums_.first(draw_blocks(logits.size()));
    if (k > maxima.size()) {
      weigh(logits, largest, temperature);
      return cut(x_, {.count = k});
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
    auto theirs = room_.keys_.first(places.size());
    for (size_t i = 0; i < places.size(); ++i) ids[i] = places[i], theirs[i] = logits[places[i]];
    weigh(theirs, largest, temperature);
    ids_ = ids;
  }

  /// Meister et al., "Locally typical sampling": those whose surprise is nearest to the expected
  /// one, until they hold `share`. The expected x tells as much as the expected surprise.
  void keep_typical(double share) {
    double expected = row_.weighted(x_.data(), w_.data(), blocks_) / total_;
    row_.nearness(x_.data(), float(expected), blocks_, keys_.data());
    cut(keys_, {.weight = share * total_});
  }

  void keep_top(double share) { cut(x_, {.weight = share * total_}); }

  void keep_heavy(float of_largest) {
    row_.maxima(w_.data(), w_.size(), sums_.data());
    drop(w_, of_largest * std::ranges::max(sums_));
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
  /// What a cut must keep at least: so much weight, so many.
  struct enough {
    double weight = 0;
    size_t count = 0;
    bool reached_by(const draw_mass& m) const { return m.weight >= weight && m.count >= count; }
  };

  /// So few are put in order one by one, and those so near to each other as well. Where so small
  /// a part is left, it moves together.
  static constexpr size_t few = 48, part = 8;
  static constexpr float near = 1e-5f, below_all = 2 * draw_x_least - 1, above_all = 1;

  uint32_t id_of(size_t place) const { return ids_.empty() ? uint32_t(place) : ids_[place]; }

  void shape(size_t blocks) {
    blocks_ = blocks;
    for (auto [mine, room] : {std::pair{&x_, &room_.x_}, {&w_, &room_.w_}, {&keys_, &room_.keys_}})
      *mine = room->first(blocks * draw_block);
    sums_ = room_.sums_.first(blocks);
  }

  void add_up() {
    total_ = 0;
    for (float sum : sums_) total_ += double(sum);
  }

  void drop(std::span<const float> keys, float least) {
    row_.drop(keys.data(), blocks_, least, w_.data(), sums_.data());
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

  /// Keeps those with the largest keys, as many as it takes; among equals the likelier, then the
  /// lowest ids. Bisects for the key that they reach.
  void cut(std::span<const float> keys, enough goal) {
    float low = below_all, high = above_all;
    draw_mass from_low{total_, blocks_ * draw_block}, from_high{0, 0};
    while (from_low.count - from_high.count > few && high - low > near) {
      float middle = low + (high - low) / 2;
      draw_mass here = row_.mass_from(keys.data(), w_.data(), blocks_, middle);
      bool reached = goal.reached_by(here);
      (reached ? low : high) = middle;
      (reached ? from_low : from_high) = here;
    }
    auto places = room_.places_.first(from_low.count - from_high.count);
    places = places.first(row_.find(keys.data(), blocks_, low, high, places.data()));
    settle(keys, places, from_high, goal);
  }

  /// The last steps of a cut: `places` hold those in question, `so_far` is what comes before them.
  void settle(std::span<const float> keys, std::span<uint32_t> places, draw_mass so_far,
              enough goal) {
    auto first = [&](uint32_t a, uint32_t b) {
      if (keys[a] != keys[b]) return keys[a] > keys[b];
      return x_[a] != x_[b] ? x_[a] > x_[b] : a < b;
    };
    if (!std::ranges::is_sorted(places, first)) std::ranges::sort(places, first);
    size_t kept = 0;
    while (kept < places.size() && !goal.reached_by(so_far)) {
      so_far.weight += double(w_[places[kept++]]);
      ++so_far.count;
    }
    if (kept == 0) return;
    float least = keys[places[kept - 1]];
    for (; kept < places.size() && keys[places[kept]] == least; ++kept) w_[places[kept]] = 0;
    drop(keys, least);
    if (draw_blocks(so_far.count) * part < blocks_) move_together();
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
    std::fill(x_.begin() + ptrdiff_t(left), x_.end(), below_all);
    drop(x_, draw_x_least);
  }

  sampler_scratch& room_;
  const draw_row& row_;
  std::span<const uint32_t> ids_;  // empty: each place is its own id
  size_t blocks_ = 0;
  std::span<float> x_, w_, keys_, sums_;
  double total_ = 0;
};

namespace {

uint32_t choose(std::span<const float> logits, const sampling& how, double u, drawing& d,
                const uint64_t* allowed) {
  size_t likeliest = d.likeliest(logits);
  float largest = logits[likeliest];
  if (!(largest > logit_lowest)) return allowed ? first_allowed(allowed, logits.size()) : 0;
  bool certain = how.temperature == 0 || how.top_k == 1 || std::isinf(largest);
  if (certain) return uint32_t(likeliest);
  if (how.top_k == 0 || how.top_k >= logits.size())
    d.weigh(logits, largest, how.temperature);
  else
    d.weigh_top(logits, how.top_k, largest, how.temperature);
  if (how.typical_p < 1) d.keep_typical(how.typical_p);
  if (how.top_p < 1) d.keep_top(how.top_p);
  if (how.min_p > 0) d.keep_heavy(how.min_p);
  return d.id_at(u);
}

}  // namespace

sampled sample(std::span<const float> logits, const sampling& how, const token_counts& counts,
               uint32_t choice, uint32_t position, sampler_scratch& scratch,
               std::span<token_logprob> top, const uint64_t* allowed) {
  check(!logits.empty() && logits.size() == scratch.vocab());
  check(top.size() == how.logprobs);
  drawing d(scratch);
  sampled drawn;
  drawn.id = choose(d.adjusted(logits, how, counts, allowed), how,
                    uniform_at(how.seed, choice, position), d, allowed);
  if (how.want_logprob || how.logprobs > 0) {
    logprobs raw(logits);
    drawn.logprob = raw.of(drawn.id);
    raw.top(top);
  }
  return drawn;
}

}  // namespace lethe

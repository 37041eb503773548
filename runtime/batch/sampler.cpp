#include "runtime/batch/sampler.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "runtime/base/check.hpp"
#include "runtime/base/wipe.hpp"
#include "runtime/batch/counter_rng.hpp"
#include "runtime/batch/logits.hpp"

namespace lethe {

std::span<float> sampler_scratch::logits() {
  logits_used_ = true;
  return logits_;
}

std::span<candidate> sampler_scratch::candidates() {
  candidates_used_ = true;
  return candidates_;
}

void sampler_scratch::wipe() {
  if (logits_used_) lethe::wipe(logits_.data(), logits_.size() * sizeof(float));
  if (candidates_used_) lethe::wipe(candidates_.data(), candidates_.size() * sizeof(candidate));
  logits_used_ = candidates_used_ = false;
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

/// Leaves out what is not allowed. `logits` and `into` may be the same.
void copy_allowed(std::span<const float> logits, const uint64_t* allowed, std::span<float> into) {
  for (size_t begin = 0; begin < logits.size(); begin += 64) {
    uint64_t bits = allowed[begin / 64];
    auto from = logits.subspan(begin, std::min<size_t>(64, logits.size() - begin));
    auto to = into.subspan(begin, from.size());
    if (bits == 0)
      std::fill(to.begin(), to.end(), logit_lowest);
    else
      for (size_t i = 0; i < from.size(); ++i) to[i] = bits >> i & 1 ? from[i] : logit_lowest;
  }
}

uint32_t first_allowed(const uint64_t* allowed, size_t vocab) {
  for (size_t id = 0; id < vocab; ++id)
    if (allowed[id / 64] >> id % 64 & 1) return uint32_t(id);
  check(false);
  return 0;
}

/// The logits to draw from: as they came, or changed in the scratch.
std::span<const float> adjusted(std::span<const float> logits, const sampling& how,
                                const token_counts& counts, sampler_scratch& scratch,
                                const uint64_t* allowed) {
  bool penalized = needs_counts(how) && counts.distinct() > 0;
  bool plain = !penalized && how.bias.empty();
  if (plain && !allowed) return logits;
  std::span<float> changed = scratch.logits();
  if (plain) return copy_allowed(logits, allowed, changed), changed;
  std::copy(logits.begin(), logits.end(), changed.begin());
  if (penalized) penalize(changed, how, counts);
  for (const logit_bias& b : how.bias) changed[b.id] += b.bias;
  if (allowed) copy_allowed(changed, allowed, changed);
  return changed;
}

bool likelier(const candidate& a, const candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

std::span<candidate> gather_all(std::span<const float> logits, std::span<candidate> room) {
  for (uint32_t id = 0; id < logits.size(); ++id) {
    room[id] = {.weight = 0, .logit = without_nan(logits[id]), .id = id};
  }
  return room;
}

void select(std::span<candidate> from, size_t k) {
  std::nth_element(from.begin(), from.begin() + ptrdiff_t(k) - 1, from.end(), likelier);
}

/// The k most likely: what does not beat the k-th so far is passed over, the rest is thinned
/// each time that the buffer is full.
std::span<candidate> gather_top(std::span<const float> logits, uint32_t k,
                                std::span<candidate> room) {
  size_t full = std::min(room.size(), size_t{k} * 2 + 1024), found = 0;
  float bar = logit_lowest;
  bool barred = false;
  for (size_t first = 0; first < logits.size(); first += passed_over) {
    auto block = logits.subspan(first, std::min<size_t>(passed_over, logits.size() - first));
    if (barred && !(largest_of(block) > bar)) continue;
    for (size_t i = 0; i < block.size(); ++i) {
      float logit = without_nan(block[i]);
      if (barred && !(logit > bar)) continue;
      room[found++] = {.weight = 0, .logit = logit, .id = uint32_t(first + i)};
      if (found < full) continue;
      select(room.first(found), k);
      found = k;
      bar = room[k - 1].logit;
      barred = true;
    }
  }
  select(room.first(found), k);
  return room.first(k);
}

std::span<candidate> gather(std::span<const float> logits, uint32_t top_k,
                            std::span<candidate> room) {
  bool all = top_k == 0 || top_k >= logits.size();
  return all ? gather_all(logits, room) : gather_top(logits, top_k, room);
}

/// Candidates that are left, and the sum of their weights.
struct pool {
  std::span<candidate> left;
  double total;
};

double sum_of(std::span<const candidate> of) {
  return std::accumulate(of.begin(), of.end(), 0.0,
                         [](double sum, const candidate& c) { return sum + c.weight; });
}

pool weigh(std::span<candidate> all, float largest, float temperature) {
  std::array<float, 256> block;
  lane_sum sum;
  for (size_t done = 0; done < all.size(); done += block.size()) {
    auto part = all.subspan(done, std::min(block.size(), all.size() - done));
    for (size_t i = 0; i < part.size(); ++i) {
      block[i] = below(part[i].logit, largest, temperature);
    }
    exp_all(std::span(block).first(part.size()));
    for (size_t i = 0; i < part.size(); ++i) part[i].weight = block[i];
    sum.add(std::span(block).first(part.size()));
  }
  return {all, sum.total()};
}

/// Puts the candidates that come first by `first` in order at the front, as many as `reached`
/// (told the sum of weights up to each) asks for, all if it never does. Sorts no more than needed.
template <class First, class Reached>
pool in_order_until(std::span<candidate> from, First first, Reached reached) {
  double sum = 0;
  size_t done = 0;
  for (size_t chunk = 64; done < from.size(); chunk *= 4) {
    size_t end = std::min(from.size(), done + chunk);
    auto begin = from.begin() + ptrdiff_t(done), middle = from.begin() + ptrdiff_t(end);
    if (end < from.size()) std::nth_element(begin, middle, from.end(), first);
    std::sort(begin, middle, first);
    for (; done < end; ++done) {
      sum += from[done].weight;
      if (reached(sum)) return {from.first(done + 1), sum};
    }
  }
  return {from, sum};
}

/// What a candidate weighs at least that is among the most likely whose weights reach `share` of
/// the total: n that each weigh less than (1 - share) / n of it can all be left out. Half of that,
/// so that rounding never leaves out too much.
double least_for(double share, double total, size_t n) {
  return 0.5 * (1 - share) * total / double(n);
}

/// A superset of those candidates.
std::span<candidate> thinned(const pool& from, double share) {
  double least = least_for(share, from.total, from.left.size());
  auto end = std::partition(from.left.begin(), from.left.end(),
                            [least](const candidate& c) { return c.weight >= least; });
  return from.left.first(size_t(end - from.left.begin()));
}

/// Meister et al., "Locally typical sampling": the candidates whose surprise is nearest to the
/// expected one, until they hold `mass`.
pool keep_typical(const pool& from, double mass, float largest, float temperature) {
  double log_total = std::log(from.total), entropy = 0;
  auto log_p = [=](const candidate& c) { return below(c.logit, largest, temperature) - log_total; };
  for (const candidate& c : from.left) {
    if (c.weight > 0) entropy -= c.weight / from.total * log_p(c);
  }
  auto nearer = [=](const candidate& a, const candidate& b) {
    double of_a = std::abs(log_p(a) + entropy), of_b = std::abs(log_p(b) + entropy);
    return of_a != of_b ? of_a < of_b : likelier(a, b);
  };
  double goal = mass * from.total;
  return in_order_until(from.left, nearer, [goal](double sum) { return sum >= goal; });
}

pool keep_top(const pool& from, double mass) {
  double goal = mass * from.total;
  return in_order_until(thinned(from, mass), likelier, [goal](double sum) { return sum >= goal; });
}

pool keep_heavy(const pool& from, double of_largest) {
  float largest = 0;
  for (const candidate& c : from.left) largest = std::max(largest, c.weight);
  double least = of_largest * double(largest);
  auto end = std::partition(from.left.begin(), from.left.end(),
                            [least](const candidate& c) { return c.weight >= least; });
  auto left = from.left.first(size_t(end - from.left.begin()));
  return {left, sum_of(left)};
}

/// Where the sum of weights, most likely first, passes `goal`.
uint32_t first_beyond(double goal, std::span<candidate> from) {
  auto passed = in_order_until(from, likelier, [goal](double sum) { return sum > goal; }).left;
  // Rounding may leave the sum at the goal; what has no weight is never drawn.
  while (passed.size() > 1 && passed.back().weight == 0) passed = passed.first(passed.size() - 1);
  return passed.back().id;
}

uint32_t draw(const pool& from, double u) { return first_beyond(u * from.total, thinned(from, u)); }

/// The sum of all weights, none of which is kept.
double total_of(std::span<const float> logits, float largest, float temperature) {
  weight_block block;
  lane_sum sum;
  for (size_t done = 0; done < logits.size(); done += block.size()) {
    auto part = logits.subspan(done, std::min(block.size(), logits.size() - done));
    weigh_block(part, largest, temperature, block);
    sum.add(std::span(block).first(part.size()));
  }
  return sum.total();
}

/// Those that weigh `least` or more. The bar for logits is a little low, so that rounding leaves
/// nobody out; who passes it is weighed.
std::span<candidate> gather_heavy(std::span<const float> logits, double least, float largest,
                                  float temperature, std::span<candidate> room) {
  double bar = double(largest) + double(temperature) * (std::log(least) - 1e-3);
  size_t found = 0;
  for (size_t first = 0; first < logits.size(); first += passed_over) {
    auto block = logits.subspan(first, std::min<size_t>(passed_over, logits.size() - first));
    if (!(double(largest_of(block)) >= bar)) continue;
    for (size_t i = 0; i < block.size(); ++i) {
      if (!(double(block[i]) >= bar)) continue;
      float weight = exp_below(below(block[i], largest, temperature));
      if (double(weight) >= least)
        room[found++] = {.weight = weight, .logit = block[i], .id = uint32_t(first + i)};
    }
  }
  return room.first(found);
}

/// From the whole vocabulary, few of which are ever looked at one by one.
uint32_t draw_from_all(std::span<const float> logits, const sampling& how, double u, float largest,
                       std::span<candidate> room) {
  auto heavy = [&](double least) {
    return gather_heavy(logits, least, largest, how.temperature, room);
  };
  if (how.top_p >= 1 && how.min_p > 0) {
    auto left = heavy(how.min_p);
    return draw({left, sum_of(left)}, u);
  }
  double total = total_of(logits, largest, how.temperature);
  double share = how.top_p < 1 ? double(how.top_p) : u;
  auto left = heavy(least_for(share, total, logits.size()));
  if (how.top_p >= 1) return first_beyond(u * total, left);
  double goal = share * total;
  pool kept = in_order_until(left, likelier, [goal](double sum) { return sum >= goal; });
  if (how.min_p > 0) kept = keep_heavy(kept, how.min_p);
  return draw(kept, u);
}

uint32_t choose(std::span<const float> logits, const sampling& how, double u,
                sampler_scratch& scratch, const uint64_t* allowed) {
  size_t likeliest = index_of_largest(logits);
  float largest = logits[likeliest];
  if (!(largest > logit_lowest)) return allowed ? first_allowed(allowed, logits.size()) : 0;
  if (how.temperature == 0 || how.top_k == 1) return uint32_t(likeliest);
  bool whole = how.top_k == 0 || how.top_k >= logits.size();
  if (whole && how.typical_p >= 1)
    return draw_from_all(logits, how, u, largest, scratch.candidates());
  pool left = weigh(gather(logits, how.top_k, scratch.candidates()), largest, how.temperature);
  if (how.typical_p < 1) left = keep_typical(left, how.typical_p, largest, how.temperature);
  if (how.top_p < 1) left = keep_top(left, how.top_p);
  if (how.min_p > 0) left = keep_heavy(left, how.min_p);
  return draw(left, u);
}

}  // namespace

sampled sample(std::span<const float> logits, const sampling& how, const token_counts& counts,
               uint32_t choice, uint32_t position, sampler_scratch& scratch,
               std::span<token_logprob> top, const uint64_t* allowed) {
  check(!logits.empty() && logits.size() == scratch.vocab());
  check(top.size() == how.logprobs);
  sampled drawn;
  drawn.id = choose(adjusted(logits, how, counts, scratch, allowed), how,
                    uniform_at(how.seed, choice, position), scratch, allowed);
  if (how.want_logprob || how.logprobs > 0) {
    logprobs raw(logits);
    drawn.logprob = raw.of(drawn.id);
    raw.top(top);
  }
  return drawn;
}

}  // namespace lethe

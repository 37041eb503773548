#include "runtime/audit/completion_order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>

#include "runtime/batch/step_loop.hpp"

namespace lethe::audit {

namespace {

constexpr uint32_t together = 8, of_each = together / 2;
constexpr uint32_t vocab = 64, prompt_tokens = 40, answer_tokens = 6;
// What the two contents say: a guesser takes one for short questions.
constexpr uint32_t word_of_a = 7, word_of_b = 31;

/// By completion from 1 on, of those that say the first content.
uint32_t rank_sum_of(planner_state& planner,
                     const std::map<uint64_t, std::unique_ptr<request>>& all, bool sorted,
                     std::mt19937_64& dice) {
  auto says_a = [&](uint64_t id) { return all.at(id)->prompt().front() == word_of_a; };
  std::map<uint64_t, uint32_t> tokens;
  uint32_t done = 0, sum = 0;
  while (done < together) {
    if (sorted) std::ranges::stable_partition(planner.queue, says_a);
    auto plan = plan_step(planner);
    check(plan.has_value());
    learn_pace(planner, *plan, dice() % 1'000'000'000);
    for (const auto& r : complete(planner, *plan))
      if (r.samples == 1 && ++tokens[r.request] == answer_tokens)
        finish(planner, r.request, r.choice);
    for (uint64_t id : take_gone(planner)) sum += says_a(id) ? ++done : (++done, 0);
  }
  return sum;
}

result<std::unique_ptr<request>> request_that_says(uint32_t word) {
  constexpr size_t bytes = size_t{64} << 10;
  auto made = request::make(bytes);
  if (!made) return made;
  const std::vector<uint32_t> prompt(prompt_tokens, word);
  auto asked = (*made)->ask({.prompt = prompt, .max_tokens = answer_tokens}, vocab);
  if (!asked) return asked.why();
  return made;
}

result<uint32_t> one_round(std::mt19937_64& dice, bool sorted) {
  std::vector<uint32_t> words(of_each, word_of_a);
  words.resize(together, word_of_b);
  std::ranges::shuffle(words, dice);
  auto planner = make_planner(
      {.pages = 32, .step_tokens = 64, .chunk_max = 16, .logit_rows = 4, .running_max = 3});
  if (!planner) return planner.why();
  std::map<uint64_t, std::unique_ptr<request>> all;
  for (uint32_t i = 0; i < together; ++i) {
    auto made = request_that_says(words[i]);
    if (!made) return made.why();
    auto queued = enqueue(*planner, ask_of(**made, i + 1));
    if (!queued) return queued.why();
    all.emplace(i + 1, *std::move(made));
  }
  return rank_sum_of(*planner, all, sorted, dice);
}

/// How likely each sum of ranks is where `of_each` of `together` are named by lot.
std::vector<double> one_round_by_lot() {
  constexpr uint32_t most = together * (together + 1) / 2;
  std::vector<std::vector<double>> ways(of_each + 1, std::vector<double>(most + 1));
  ways[0][0] = 1;
  for (uint32_t rank = 1; rank <= together; ++rank)
    for (uint32_t n = of_each; n > 0; --n)
      for (uint32_t sum = most; sum >= rank; --sum) ways[n][sum] += ways[n - 1][sum - rank];
  double all = 0;
  for (double w : ways[of_each]) all += w;
  for (double& w : ways[of_each]) w /= all;
  return ways[of_each];
}

/// Of both sides: a sum that is as far from the middle, or farther.
double chance_of_sum(uint64_t sum, uint32_t rounds) {
  const auto one = one_round_by_lot();
  std::vector<double> all{1};
  for (uint32_t i = 0; i < rounds; ++i) {
    std::vector<double> next(all.size() + one.size() - 1);
    for (size_t a = 0; a < all.size(); ++a)
      for (size_t b = 0; b < one.size(); ++b) next[a + b] += all[a] * one[b];
    all = std::move(next);
  }
  double below = 0, above = 0;
  for (size_t s = 0; s < all.size(); ++s) {
    if (s <= sum) below += all[s];
    if (s >= sum) above += all[s];
  }
  return std::min(1.0, 2 * std::min(below, above));
}

struct ordered {
  double mean_rank = 0, chance = 1;
};

result<ordered> rounds_of(const order_settings& s, bool sorted) {
  std::mt19937_64 dice(s.seed);
  uint64_t sum = 0;
  for (uint32_t i = 0; i < s.rounds; ++i) {
    auto one = one_round(dice, sorted);
    if (!one) return one.why();
    sum += *one;
  }
  return ordered{double(sum) / s.rounds / of_each, chance_of_sum(sum, s.rounds)};
}

std::string text_of(const ordered& o) {
  return fmt::format("mean rank of one content {:.3f}, p = {:.3g}", o.mean_rank, o.chance);
}

}  // namespace

finding measure_completion_order(const order_settings& s) {
  finding out{.promise = "T",
              .attacks = "A7",
              .what = "whether what requests say decides which of them is done first"};
  auto real = rounds_of(s, false), sorted = rounds_of(s, true);
  if (!real || !sorted) return out.note = (real ? sorted.why() : real.why()).text, out;
  out.measured = fmt::format("{} rounds of {} requests: {}", s.rounds, together, text_of(*real));
  out.bound = fmt::format("mean rank {:.1f} by lot; p above {:g}", (together + 1) / 2.0, s.alpha);
  out.said = real->chance > s.alpha ? verdict::held : verdict::broken;
  out.controls = {{.without = "first come, first served (the queue sorted by what prompts say)",
                   .measured = text_of(*sorted),
                   .found = sorted->chance <= s.alpha}};
  return out;
}

}  // namespace lethe::audit

#include "runtime/audit/metrics_differences.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <random>

#include "runtime/audit/fingerprint.hpp"
#include "runtime/cluster/cluster_metrics.hpp"

namespace lethe::audit {

namespace {

// Classes of answers, in tokens: what the fingerprint of a question is made of.
constexpr uint32_t classes[][2] = {{1, 16}, {17, 64}, {65, 256}, {257, 1024}};
constexpr double allowed_above_chance = 0.05;
constexpr uint64_t page_tokens = 16, pages = 4096;

uint64_t pick(std::mt19937_64& dice, uint64_t from, uint64_t to) {
  return from + dice() % (to - from + 1);
}

ended_request request_of(uint32_t answer_tokens, std::mt19937_64& dice) {
  const uint64_t step_us = pick(dice, 7'000, 9'000), prompt = pick(dice, 10, 400);
  ended_request r{.served = true,
                  .prompt_tokens = uint32_t(prompt),
                  .answer_tokens = answer_tokens,
                  .arenas = 2,
                  .bytes_wiped = 200'000 + 700 * uint64_t{answer_tokens},
                  .queue_us = pick(dice, 50, 500),
                  .prefill_us = 100 * prompt,
                  .decode_us = step_us * (answer_tokens - 1)};
  r.first_token_us = r.queue_us + r.prefill_us;
  r.whole_us = r.first_token_us + r.decode_us + pick(dice, 500, 5'000);
  r.between_tokens.add(step_us, answer_tokens - 1);
  return r;
}

/// A cluster as its metrics see it: one engine that adds up what requests took, the scheduler that
/// counts them, and the gate before the page.
class counted_cluster {
 public:
  explicit counted_cluster(schema::Profile profile)
      : engine_(profile == schema::Profile::LAB ? 1 : metrics_gate::requests_least) {
    shown_.profile = profile;
    shown_.pages = pages;
    shown_.wanted = shown_.ready = 1;
  }

  void serve(const ended_request& r) {
    auto& c = shown_.counters;
    ++c.admitted, ++c.served;
    prefilled_ += r.prompt_tokens;
    decoded_ += r.answer_tokens;
    pages_wiped_ += (r.prompt_tokens + r.answer_tokens) / page_tokens + 1;
    requests_took took;
    took.add(r);
    if (!engine_.add(took)) return;
    auto told = engine_.take();
    c.arenas_wiped += told.arenas;
    c.bytes_wiped += told.bytes_wiped;
    c.requests.add(told.of_served);
    c.prefilled = prefilled_, c.decoded = decoded_, c.pages_wiped = pages_wiped_;
  }

  /// The numbers on the page, some time after it was read last.
  std::vector<double> read() {
    shown_.up_ms += 2 * metrics_gate::hold_ms;
    const auto text = metrics_text(gate_.shown(shown_));
    std::vector<double> numbers;
    for (size_t at = 0, end; (end = text.find('\n', at)) != text.npos; at = end + 1) {
      auto line = text.substr(at, end - at);
      if (!line.starts_with('#'))
        numbers.push_back(std::strtod(line.c_str() + line.rfind(' '), nullptr));
    }
    return numbers;
  }

 private:
  cluster_numbers shown_;
  told_together engine_;
  metrics_gate gate_;
  uint64_t prefilled_ = 0, decoded_ = 0, pages_wiped_ = 0;
};

uint32_t length_in(size_t of_class, std::mt19937_64& dice) {
  return uint32_t(pick(dice, classes[of_class][0], classes[of_class][1]));
}

told_apart guess_lengths(schema::Profile profile, const metrics_settings& s) {
  std::mt19937_64 dice(s.seed);
  counted_cluster cluster(profile);
  rows_by_label rows(std::size(classes));
  for (uint32_t i = 0; i < s.victims; ++i)
    for (size_t label = 0; label < rows.size(); ++label) {
      for (uint64_t others = pick(dice, 0, 31); others > 0; --others)
        cluster.serve(request_of(length_in(dice() % rows.size(), dice), dice));
      const auto before = cluster.read();
      cluster.serve(request_of(length_in(label, dice), dice));
      auto row = cluster.read();
      for (size_t n = 0; n < row.size(); ++n) row[n] -= before[n];
      rows[label].push_back(std::move(row));
    }
  return tell_apart(rows, s.seed);
}

}  // namespace

finding measure_metrics_differences(const metrics_settings& s) {
  finding out{.promise = "P",
              .attacks = "A9",
              .what = "how long one answer was, from the metrics before and after it"};
  const auto strict = guess_lengths(schema::Profile::STRICT, s);
  const auto exact = guess_lengths(schema::Profile::LAB, s);
  const double most = strict.by_chance + allowed_above_chance;
  auto text = [&](const told_apart& t) {
    const auto r = exact_interval(t.made, s.alpha);
    return fmt::format("the length class is guessed right in {} of {} readings (between {} and {})",
                       percent(t.made.share()), t.made.of, percent(r.low), percent(r.high));
  };
  out.measured = text(strict);
  out.bound = fmt::format("{}: chance ({}) and 5 % more", percent(most), percent(strict.by_chance));
  out.said = binomial_at_least(strict.made, most) > s.alpha ? verdict::held : verdict::broken;
  out.controls = {{.without = "rounding, holding back and lots of 16 (the lab's metrics)",
                   .measured = text(exact),
                   .found = binomial_at_least(exact.made, most) <= s.alpha}};
  out.note = "who sends the other 15 of a lot himself can subtract them: that isn't hidden";
  return out;
}

}  // namespace lethe::audit

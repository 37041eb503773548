#include "runtime/audit/prefix_oracle.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "runtime/audit/statistics.hpp"

namespace lethe::audit {

namespace {

constexpr double allowed_auc = 0.03, found_auc = 0.9;
constexpr uint32_t tail_tokens = 8;

struct taken {
  double tokens = 0, us = 0;
};

/// What guessed and fresh beginnings took, less first: `fresh` is what takes more.
struct oracle {
  std::vector<double> guessed_tokens, fresh_tokens, guessed_us, fresh_us;

  void add(bool guessed, const taken& t) {
    (guessed ? guessed_tokens : fresh_tokens).push_back(t.tokens);
    (guessed ? guessed_us : fresh_us).push_back(t.us);
  }
  double by_tokens() const { return auc(fresh_tokens, guessed_tokens).area; }
  double by_time() const { return auc(fresh_us, guessed_us).area; }
};

class asked_engine {
 public:
  static result<asked_engine> start(const prefix_settings& s, bool keeps) {
    auto serving =
        engine::start(s.model->weights->weights(),
                      {.threads = 1, .page_tokens = s.page_tokens, .keeps_prefixes = keeps});
    if (!serving) return serving.why();
    return asked_engine(*std::move(serving), s.model->model.shape().vocab);
  }

  /// Asks for one token.
  result<taken> ask(std::span<const uint32_t> prompt) {
    constexpr size_t bytes = size_t{1} << 20;
    auto made = request::make(bytes);
    if (!made) return made.why();
    request& r = **made;
    auto asked = r.ask({.prompt = prompt, .max_tokens = 1, .how = {.temperature = 0}}, vocab_);
    if (!asked) return asked.why();
    const auto before = engine_->numbers();
    if (auto ok = engine_->submit(r); !ok) return ok.why();
    for (uint32_t seen = r.events(); !r.gone(); seen = r.events()) r.wait(seen);
    const auto after = engine_->numbers();
    const auto& t = r.times();
    taken out{.tokens = double(after.tokens_prefilled - before.tokens_prefilled +
                               after.tokens_decoded - before.tokens_decoded),
              .us = double(t.first_ns - t.asked_ns) / 1000};
    r.forget();
    return out;
  }

 private:
  asked_engine(std::unique_ptr<engine> e, uint32_t vocab) : engine_(std::move(e)), vocab_(vocab) {}

  std::unique_ptr<engine> engine_;
  uint32_t vocab_;
};

/// Somebody asks; then one who doesn't know whether they did asks with the same beginning, or with
/// another one, in random order.
result<oracle> ask_pairs(const prefix_settings& s, bool keeps) {
  auto at = asked_engine::start(s, keeps);
  if (!at) return at.why();
  std::mt19937_64 dice(s.seed);
  const uint32_t vocab = s.model->model.shape().vocab;
  auto random_ids = [&](size_t n) {
    std::vector<uint32_t> ids(n);
    for (uint32_t& id : ids) id = uint32_t(dice() % vocab);
    return ids;
  };
  auto then_others = [&](std::vector<uint32_t> beginning) {
    auto tail = random_ids(tail_tokens);
    beginning.insert(beginning.end(), tail.begin(), tail.end());
    return beginning;
  };
  oracle all;
  for (uint32_t pair = 0; pair < s.pairs; ++pair) {
    const auto victim = random_ids(size_t{s.page_tokens} * s.prefix_pages);
    const auto other = random_ids(victim.size());
    if (auto ok = at->ask(then_others(victim)); !ok) return ok.why();
    const bool guess_first = dice() % 2 == 0;
    for (bool guessed : {guess_first, !guess_first}) {
      auto took = at->ask(then_others(guessed ? victim : other));
      if (!took) return took.why();
      all.add(guessed, *took);
    }
  }
  return all;
}

std::string text_of(const oracle& o) {
  return fmt::format("AUC {:.3f} by computed tokens, {:.3f} by time to the first word",
                     o.by_tokens(), o.by_time());
}

curve curve_of(const char* name, std::span<const double> us) {
  std::vector<double> sorted(us.begin(), us.end());
  std::ranges::sort(sorted);
  curve c{.name = name};
  const size_t step = std::max<size_t>(1, sorted.size() / 50);
  for (size_t i = 0; i < sorted.size(); i += step)
    c.points.emplace_back(sorted[i] / 1000, double(i + 1) / double(sorted.size()));
  return c;
}

plot plot_of(const char* title, const oracle& o) {
  return {.title = title,
          .x = "ms to the first word",
          .y = "share of requests",
          .curves = {curve_of("guessed beginning", o.guessed_us),
                     curve_of("fresh beginning", o.fresh_us)},
          .log_x = true};
}

}  // namespace

finding measure_prefix_oracle(const prefix_settings& s) {
  finding out{.promise = "S",
              .attacks = "A1",
              .what = "whether the beginning of a prompt was sent by somebody before"};
  auto strict = ask_pairs(s, false), lab = ask_pairs(s, true);
  if (!strict || !lab) return out.note = (strict ? lab.why() : strict.why()).text, out;
  // Times that say nothing are farther from the middle once in a million audits.
  constexpr double deviations = 4.9;
  const double open = deviations * auc_deviation(s.pairs, s.pairs);
  const bool tokens = std::abs(strict->by_tokens() - 0.5) <= allowed_auc;
  const bool times = std::abs(strict->by_time() - 0.5) <= allowed_auc + open;
  out.measured = fmt::format("{}, of {} pairs", text_of(*strict), s.pairs);
  out.bound = fmt::format("0.5 +- {} by tokens; by time +- {:.3f} more, which chance leaves open",
                          allowed_auc, open);
  out.said = tokens && (times || !s.judge_times) ? verdict::held : verdict::broken;
  out.controls = {{.without = "forgetting between requests (the lab's kept prefixes)",
                   .measured = text_of(*lab),
                   .found = lab->by_tokens() >= found_auc}};
  out.plots = {plot_of("Time to the first word, nothing kept", *strict),
               plot_of("Time to the first word, prefixes kept (lab)", *lab)};
  return out;
}

}  // namespace lethe::audit

#include "runtime/audit/steering.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <thread>

#include "runtime/audit/small_client.hpp"

namespace lethe::audit {

namespace {

constexpr uint32_t redraws = 2, wanted = 0, victims = 2;
constexpr uint32_t asks_max = 8, refill_every = 4;  // bodies
constexpr size_t tokens_each = refill_every * asks_max * (1 + redraws);
constexpr uint32_t control_bodies = 100;
constexpr double coarse_bias = 1.25;

struct lie {
  treatment how;
  const char* told;
};
constexpr lie lies[] = {
    {treatment::full_by_its_word, "nodes in league sign that they are full"},
    {treatment::gone, "404"},
    {treatment::not_ready, "503"},
    {treatment::full_by_hearsay, "429 without a node's word"},
    {treatment::dropped, "cut connections"},
    {treatment::stalled, "no answer"},
};

/// One victim in so many processes that ask at the same time, each body in one of them.
class victim {
 public:
  victim(small_cluster& cluster, uint32_t bodies, bool as_new_processes)
      : cluster_(cluster), bodies_(bodies), as_new_(as_new_processes) {
    cluster.on_stalled = [this](uint32_t user) {
      std::lock_guard lock(mutex_);
      patience_[user].request_stop();
    };
  }

  result<std::string> run() {
    const auto tokens = cluster_.sell(tokens_each);
    for (uint32_t u = 0; u < victims; ++u) {
      auto made = small_client::start(cluster_, u, tokens);
      if (!made) return made.why();
      clients_.push_back(*std::move(made));
    }
    std::vector<std::jthread> threads;
    for (uint32_t u = 0; u < victims; ++u) threads.emplace_back([this, u] { ask_bodies(u); });
    for (auto& t : threads) t.join();
    return broken_ ? result<std::string>(*broken_) : said_;
  }

 private:
  void ask_bodies(uint32_t user) {
    uint32_t asked = 0;
    for (uint32_t body = user; body < bodies_; body += victims) {
      ask_again_and_again(user, body);
      if (++asked % refill_every != 0) continue;
      if (auto ok = clients_[user]->refill(); !ok) {
        std::lock_guard lock(mutex_);
        broken_ = ok.why();
        return;
      }
    }
  }

  void ask_again_and_again(uint32_t user, uint32_t talk) {
    const auto body = fmt::format(R"({{"user":{},"talk":{}}})", user, talk);
    for (uint32_t i = 0; i < asks_max; ++i) {
      const auto end = as_new_ ? clients_[user]->ask_as_new(body, patience(user))
                               : clients_[user]->ask(body, patience(user));
      if (end) return;
      if (end.fault != call_fault::exposure) continue;
      std::lock_guard lock(mutex_);
      if (said_.empty()) said_ = end.why.text;
      return;
    }
  }

  /// For one more ask: it ends when the application has waited long enough.
  std::stop_token patience(uint32_t user) {
    std::lock_guard lock(mutex_);
    patience_[user] = std::stop_source();
    return patience_[user].get_token();
  }

  small_cluster& cluster_;
  const uint32_t bodies_;
  const bool as_new_;
  std::vector<std::unique_ptr<small_client>> clients_;
  std::mutex mutex_;  // of what follows
  std::array<std::stop_source, victims> patience_;
  std::string said_;
  std::optional<error> broken_;
};

double bound_of(double share, uint32_t candidates) {
  return 1 - std::pow(1 - share, candidates * (1 + redraws));
}

double share_of_wanted(const steering_settings& s) {
  return shares_of(roster_of(s.capacities))[wanted];
}

std::string text_of(const proportion& p) { return fmt::format("{:.3f} of {}", p.share(), p.of); }

/// A bias that is to be found, or half of what is possible above the bound.
power_wanted to_find(double bias, double bound) {
  return {.bias = std::min(bias, (1 + 1 / bound) / 2)};
}

struct judged {
  std::string text;
  verdict said = verdict::not_measured;
};
/// A scheduler that gets less than an honest one has not been tried.
judged judge(const lie& l, double bound, uint32_t bodies, const steering_settings& s) {
  const auto got = steer(l.how, bodies, s);
  if (!got) return {fmt::format("{}: {}", l.told, got.why().text)};
  const auto [hits, of] = got->opened;
  judged j{fmt::format("{}: {}", l.told, text_of(got->opened))};
  if (!got->said.empty()) j.text += fmt::format(", then \"{}\"", got->said);
  if (binomial_at_most(hits, of, share_of_wanted(s)) >= alpha) j.said = verdict::held;
  if (binomial_at_least(hits, of, bound) < alpha) j.said = verdict::broken;
  return j;
}

control forgetful(double bound, const steering_settings& s) {
  const char* without = "memory of what was drawn for a body: each ask is a new process";
  const auto got = steer(treatment::full_by_its_word, control_bodies, s, true);
  if (!got) return {without, got.why().text, false};
  return {without, text_of(got->opened),
          binomial_at_least(got->opened.hits, got->opened.of, bound) < alpha};
}

}  // namespace

result<steered_bodies> steer(treatment how, uint32_t bodies, const steering_settings& settings,
                             bool as_new_processes) {
  auto cluster = small_cluster::start({.capacities = settings.capacities,
                                       .users = victims,
                                       .candidates = settings.candidates,
                                       .redraws = redraws});
  if (!cluster) return cluster.why();
  (*cluster)->schedule = [how](const arrival& a) -> decision {
    auto at = std::ranges::find(a.drawn, wanted);
    if (at == a.drawn.end()) return {how};
    return {treatment::forwarded, uint32_t(at - a.drawn.begin())};
  };
  auto said = victim(**cluster, bodies, as_new_processes).run();
  if (!said) return said.why();
  steered_bodies out{.opened = {0, bodies}, .said = *std::move(said)};
  std::set<uint32_t> opened;
  for (const auto& o : (*cluster)->take_openings())
    if (o.node == wanted)
      opened.insert(o.talk);
    else
      ++out.other_openings;
  out.opened.hits = opened.size();
  return out;
}

finding measure_steering(const steering_settings& settings) {
  const double share = share_of_wanted(settings), bound = bound_of(share, settings.candidates);
  const auto fine = to_find(bias_to_find, bound), rough = to_find(coarse_bias, bound);
  const auto many = uint32_t(tries_needed(bound, fine)), few = uint32_t(tries_needed(bound, rough));
  finding out{.promise = "T", .attacks = "A4"};
  out.what = "a scheduler that refuses until a victim's request lands where it wants";
  out.bound = fmt::format(
      "1 - (1 - f)^(k (1 + r)) = {:.3f} of the bodies for f = {:.3f}, k = {}, r = {}; p at least "
      "{:g}; {} bodies find {:.3g} times it, {} find {:.3g} times it",
      bound, share, settings.candidates, redraws, alpha, many, fine.bias, few, rough.bias);
  out.said = verdict::held;
  double done = 0;
  for (const lie& l : lies) {
    const bool first = &l == lies;
    const uint32_t given = first ? settings.bodies : settings.bodies_each;
    const auto j = judge(l, bound, given ? given : first ? many : few, settings);
    out.measured += fmt::format("{}{}", first ? "" : "; ", j.text);
    if (out.said == verdict::held || j.said == verdict::broken) out.said = j.said;
    if (settings.tell) settings.tell(++done / double(std::size(lies)));
  }
  out.controls = {forgetful(bound, settings)};
  out.note =
      "the scheduler's refusals cost it the request when they are used up; the budget is one "
      "process's: a script of many processes is the control";
  return out;
}

finding measure_two_candidates(const pair_placement_settings& settings) {
  finding out{.promise = "T", .attacks = "A4, A10"};
  out.what = "two candidates for each request: no more than their bound, alike for all users";
  const auto p = place_requests(settings.placed);
  const auto s = steer(treatment::full_by_its_word, settings.steered.bodies, settings.steered);
  if (!p || !s) return out.note = (p ? s.why() : p.why()).text, out;
  const exposed e = exposed_in(*p, 1, settings.placed.candidates);
  const equality equal = equality_of(*p);
  const double bound = bound_of(share_of_wanted(settings.steered), settings.steered.candidates);
  const double above = binomial_at_least(s->opened.hits, s->opened.of, bound);
  out.measured = fmt::format(
      "both open all of {} requests: {}; homogeneity of users p = {:.2g}; a scheduler that refuses "
      "until it has its way: {}",
      p->asked(), audit::text_of(e), equal.homogeneous.p, text_of(s->opened));
  out.bound = fmt::format(
      "1 - (1 - f)^2 = {:.3f} of requests; 1 - (1 - f)^{} = {:.3f} of bodies with "
      "r = {}; each p at least {:g}",
      e.due, 2 * (1 + redraws), bound, redraws, alpha);
  const bool good = e.p >= alpha && equal.homogeneous.p >= alpha && above >= alpha;
  out.said = p->failed ? verdict::not_measured : good ? verdict::held : verdict::broken;
  out.controls = {distinct_candidates(settings.placed.capacities),
                  forgetful(bound, settings.steered)};
  out.note = "k = 2 promises no placement: the scheduler may let the first candidate fail";
  if (p->failed) out.note += "; " + p->first_failure;
  return out;
}

}  // namespace lethe::audit

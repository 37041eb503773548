#include <algorithm>
#include <cmath>

#include "runtime/audit/placement.hpp"
#include "runtime/log/draw.hpp"

namespace lethe::audit {

namespace {

constexpr uint32_t spans[] = {1, 2, 4, 8, 16};
constexpr uint32_t spans_least = 20;           // fewer say nothing
constexpr uint32_t control_requests = 60'000;  // of each user: found all but surely

std::string text_of(const equality& e) {
  return fmt::format("homogeneity p = {:.2g}; 99 % intervals of P_u - P_v in [{:.4f}, {:.4f}]",
                     e.homogeneous.p, e.widest.low, e.widest.high);
}

finding line(std::string what, const char* attacks, const placement_settings& s,
             const placement& p) {
  finding out{.promise = "T", .attacks = attacks, .what = std::move(what)};
  out.measured =
      fmt::format("{} requests of {} users to nodes of {}, full {:.0f} % of the time: ", p.asked(),
                  p.users, audit::text_of(std::span<const uint32_t>(s.capacities)), 100 * s.full);
  if (p.failed)
    out.note = fmt::format("{} of {} requests failed: {}", p.failed, p.asked(), p.first_failure);
  return out;
}

void say(finding& out, const placement& p, bool good) {
  out.said = p.failed ? verdict::not_measured : good ? verdict::held : verdict::broken;
}

/// Draws of a client whose roster gives one node more, for one user or for all.
placement steered(const placement& like, uint32_t users, bool all) {
  std::vector<uint32_t> capacities;
  for (double share : like.shares) capacities.push_back(uint32_t(share * 1e6));
  const roster honest = roster_of(capacities);
  // Its share becomes 1.1 times what it was.
  const double p = like.shares[0], more = bias_to_find * p;
  capacities[0] = uint32_t(more * (1 - p) / (1 - more) * 1e6);
  const roster biased = roster_of(capacities);
  return made_up(like.shares, users, control_requests,
                 [&](uint32_t u) { return draw_nodes(all || u == 0 ? biased : honest, 1); });
}

finding placement_of(const placement_settings& s, const placement& p) {
  finding out =
      line("requests of real clients land by capacity, by who opened their seals", "A4", s, p);
  const fit f = fit_of(p);
  out.measured += audit::text_of(f);
  out.bound = fmt::format(
      "each p at least {:g}; {} requests find 1.1 times the share of any node "
      "with power {}",
      alpha, draws_needed(p.shares), wanted_power);
  say(out, p, f.good());
  const fit c = fit_of(steered(p, 1, true));
  out.controls = {{"fairness: one node gets 1.1 times its share", audit::text_of(c), !c.good()}};
  plot bars{.title = "Openings by node, against capacity", .x = "node", .y = "share", .bars = true};
  bars.curves = {{"capacity", {}}, {"opened", {}}};
  std::vector<double> opened(p.shares.size());
  for (const auto& o : p.openings) opened[o.node] += 1 / double(p.openings.size());
  for (size_t n = 0; n < opened.size(); ++n) {
    bars.curves[0].points.emplace_back(double(n), p.shares[n]);
    bars.curves[1].points.emplace_back(double(n), opened[n]);
  }
  out.plots = {std::move(bars)};
  return out;
}

/// So that 99 % intervals of users who are alike are inside all but surely: 2.58 standard
/// deviations for the interval, 4 for where its middle may lie.
uint64_t requests_needed(const placement& p, double within) {
  double most = 0;  // the variance of one request's difference
  for (double share : p.shares) most = std::max(most, 2 * share * (1 - share));
  return uint64_t(std::ceil(most * std::pow((2.58 + 4) / within, 2)));
}

finding equality_line(const placement_settings& s, const placement& p) {
  finding out = line("every user's requests land alike, whoever asks", "A4", s, p);
  const equality e = equality_of(p);
  out.measured += text_of(e);
  out.bound = fmt::format("p at least {:g}, and all intervals inside +-{}", alpha, s.equal_within);
  say(out, p, e.good(s.equal_within));
  const uint64_t each = uint64_t{p.talks} * p.turns, needed = requests_needed(p, s.equal_within);
  if (out.said == verdict::broken && e.homogeneous.p >= alpha && each < needed) {
    out.said = verdict::not_measured;
    out.note = fmt::format("too few: such intervals need {} requests of each user", needed);
  }
  const equality c = equality_of(steered(p, std::max(2u, p.users), false));
  out.controls = {{"equality: user 0 is steered, 1.1 times to one node",
                   fmt::format("{} of {} requests each", text_of(c), control_requests),
                   !c.good(placement_settings().equal_within)}};
  plot bars{.title = "Openings by node, for each user", .x = "node", .y = "share", .bars = true};
  const auto table = table_of(p);
  for (size_t u = 0; u < table.size(); ++u) {
    auto& curve = bars.curves.emplace_back();
    curve.name = fmt::format("user {}", u);
    for (size_t n = 0; n < table[u].size(); ++n)
      curve.points.emplace_back(double(n), double(table[u][n]) / (double(p.talks) * p.turns));
  }
  out.plots = {std::move(bars)};
  return out;
}

/// Both candidates of a request run it; one answers.
result<control> both_execute(const placement_settings& s) {
  auto p = place_requests({.capacities = s.capacities,
                           .users = 1,
                           .talks = 400,
                           .turns = 1,
                           .candidates = 2,
                           .all_open = true,
                           .full = 0,
                           .threads = s.threads});
  if (!p) return p.why();
  const exposed opened = exposed_in(*p, 1);
  std::erase_if(p->openings, [](const opening& o) { return !o.answered; });
  return control{"one node for each request: two candidates both execute it",
                 fmt::format("by who opened, {}; by who answered, it would pass: {}",
                             text_of(opened), text_of(exposed_in(*p, 1))),
                 opened.p < alpha};
}

finding exposure_line(const placement_settings& s, const placement& p) {
  finding out = line("a node sees no more of a user than k draws show it", "A10", s, p);
  plot curves{.title = "Chance that one node saw something of k requests",
              .x = "requests in a row",
              .y = "share",
              .curves = {{"1 - (1 - f)^k", {}}, {"opened", {}}},
              .log_x = true};
  bool good = true;
  std::string texts;
  for (uint32_t k : spans) {
    if (p.talks * p.turns / k < spans_least) continue;
    const exposed e = exposed_in(p, k);
    good = good && e.p >= alpha;
    texts += fmt::format("{}{}{}", texts.empty() ? "" : "; ",
                         k == p.turns ? "a conversation, " : "", audit::text_of(e));
    curves.curves[0].points.emplace_back(k, e.due);
    curves.curves[1].points.emplace_back(k, e.seen.share());
  }
  out.measured += texts;
  out.bound = fmt::format(
      "1 - (1 - f)^k for each node, two-sided p at least {:g}; the worst node "
      "is shown",
      alpha);
  say(out, p, good);
  out.plots = {std::move(curves)};
  out.note += fmt::format("{}each turn of a conversation sends all of it again, so k is its turns",
                          out.note.empty() ? "" : "; ");
  if (auto both = both_execute(s))
    out.controls.push_back(*std::move(both));
  else
    out.controls.push_back({"one node for each request", both.why().text, false});
  out.controls.push_back(distinct_candidates(s.capacities));
  return out;
}

}  // namespace

control distinct_candidates(std::span<const uint32_t> capacities) {
  const roster nodes = roster_of(capacities);
  const auto c = made_up(shares_of(nodes), 1, control_requests,
                         [&](uint32_t) { return distinct_nodes(nodes); });
  const exposed e = exposed_in(c, 1, 2);
  return {"independent draws: two candidates that are never the same node",
          fmt::format("for two draws, {}", text_of(e)), e.p < alpha};
}

std::vector<finding> measure_placement(const placement_settings& settings) {
  auto p = place_requests(settings);
  if (!p)
    return {{.promise = "T",
             .attacks = "A4, A10",
             .what = "where requests land",
             .note = p.why().text}};
  return {placement_of(settings, *p), equality_line(settings, *p), exposure_line(settings, *p)};
}

}  // namespace lethe::audit

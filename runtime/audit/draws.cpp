#include "runtime/audit/draws.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "runtime/log/draw.hpp"

namespace lethe::audit {

namespace {

using counts = std::vector<uint64_t>;

/// With a probability that is exact to 2^-53.
bool happens(double p) {
  return double(uniform_below(uint64_t{1} << 53, fill_random)) < p * 0x1p53;
}

/// `draw` for each of `n`, with word of how far it is.
template <class Draw>
counts counted(size_t nodes, uint64_t n, const progress& tell, Draw draw) {
  counts c(nodes);
  for (uint64_t i = 0; i < n; ++i) {
    ++c[draw()];
    if (tell && i % 65'536 == 0) tell(double(i) / double(n));
  }
  return c;
}

/// The same draw, but that node gets `bias` times its share: of what others get, a part is its.
control biased(const roster& nodes, uint32_t favoured, uint64_t draws) {
  const auto shares = shares_of(nodes);
  const double p = shares[favoured], takes = (bias_to_find - 1) * p / (1 - p);
  auto draw = [&] {
    const uint32_t node = draw_nodes(nodes, 1)[0];
    return node != favoured && happens(takes) ? favoured : node;
  };
  const fit f = fit_of(counted(shares.size(), draws, {}, draw), shares);
  return {fmt::format("fairness to node {}: it gets {} times its share", favoured, bias_to_find),
          fmt::format("{} of {} draws", text_of(f), draws), !f.good()};
}

plot bars_of(std::span<const double> shares, const counts& c, uint64_t n) {
  plot p{.title = "Draws by node, against capacity", .x = "node", .y = "share", .bars = true};
  p.curves = {{"capacity", {}}, {"drawn", {}}};
  for (size_t i = 0; i < shares.size(); ++i) {
    p.curves[0].points.emplace_back(double(i), shares[i]);
    p.curves[1].points.emplace_back(double(i), double(c[i]) / double(n));
  }
  return p;
}

std::vector<double> pair_shares(std::span<const double> shares) {
  std::vector<double> both;
  for (double a : shares)
    for (double b : shares) both.push_back(a * b);
  return both;
}

template <class Draw>
fit fit_of_pairs(const roster& nodes, uint64_t pairs, Draw draw) {
  const auto shares = shares_of(nodes);
  const auto c = counted(shares.size() * shares.size(), pairs, {}, [&] {
    const auto two = draw(nodes);
    return two[0] * shares.size() + two[1];
  });
  return fit_of(c, pair_shares(shares));
}

}  // namespace

roster roster_of(std::span<const uint32_t> capacities) {
  roster r;
  for (uint32_t c : capacities) r.leaves.emplace_back().capacity = c;
  return r;
}

std::vector<double> shares_of(const roster& nodes) {
  std::vector<double> shares;
  for (const auto& leaf : nodes.leaves)
    shares.push_back(double(leaf.capacity) / double(nodes.capacity()));
  return shares;
}

fit fit_of(std::span<const uint64_t> counts, std::span<const double> shares) {
  fit f{.all = goodness_of_fit(counts, shares), .most = 0};
  uint64_t n = 0;
  for (uint64_t c : counts) n += c;
  for (size_t i = 0; i < counts.size(); ++i) {
    f.node_p = std::min(f.node_p, binomial_at_least(counts[i], n, shares[i]));
    f.most = std::max(f.most, double(counts[i]) / (double(n) * shares[i]));
  }
  return f;
}

std::vector<uint32_t> distinct_nodes(const roster& nodes) {
  while (true)
    if (auto two = draw_nodes(nodes, 2); two[0] != two[1]) return two;
}

std::string text_of(const fit& f) {
  return fmt::format(
      "chi-square {:.1f} with {} degrees of freedom, p = {:.2g}; most favoured node {:.3f} of its "
      "share, p = {:.2g}",
      f.all.statistic, f.all.df, f.all.p, f.most, f.node_p);
}

std::string text_of(std::span<const uint32_t> capacities) {
  return fmt::format("{}", fmt::join(capacities, ", "));
}

finding measure_draws(const draw_settings& settings) {
  const roster nodes = roster_of(settings.capacities);
  const auto shares = shares_of(nodes);
  const uint64_t needed = draws_needed(shares), n = settings.draws ? settings.draws : needed;
  auto draw = [&] { return draw_nodes(nodes, 1)[0]; };
  const auto drawn = counted(shares.size(), n, {}, draw);
  const auto beside = counted(shares.size(), settings.beside, settings.tell, draw);
  const fit f = fit_of(drawn, shares), many = fit_of(beside, shares);
  finding out{.promise = "T", .attacks = "A4"};
  out.what =
      fmt::format("the client's own draws follow capacity ({})", text_of(settings.capacities));
  out.measured = fmt::format("{} draws: {}", n, text_of(f));
  if (settings.beside)
    out.measured += fmt::format("; {} beside them: {}", settings.beside, text_of(many));
  out.bound = fmt::format(
      "each p at least {:g}; {} draws find 1.1 times the share of any node with power {} "
      "(chi-square alone: {:.3f})",
      alpha, needed, wanted_power, fit_power(shares, needed));
  out.said = f.good() && (settings.beside == 0 || many.good()) ? verdict::held : verdict::broken;
  // Twice as many find it all but surely, and a control must not fail by chance.
  for (uint32_t i = 0; i < shares.size(); ++i) out.controls.push_back(biased(nodes, i, 2 * needed));
  out.plots.push_back(settings.beside ? bars_of(shares, beside, settings.beside)
                                      : bars_of(shares, drawn, n));
  if (n < needed) out.note = fmt::format("only {} draws: too few for that power", n);
  return out;
}

finding measure_pairs(const pair_settings& settings) {
  const roster nodes = roster_of(settings.capacities);
  const fit f =
      fit_of_pairs(nodes, settings.pairs, [](const roster& r) { return draw_nodes(r, 2); });
  const fit d = fit_of_pairs(nodes, settings.pairs, distinct_nodes);
  finding out{.promise = "T", .attacks = "A4, A10"};
  out.what = fmt::format("of two candidates each is drawn on its own, with replacement ({})",
                         text_of(settings.capacities));
  out.measured = fmt::format("{} pairs: {}", settings.pairs, text_of(f));
  out.bound = fmt::format("each p at least {:g}, over all pairs of nodes", alpha);
  out.said = f.good() ? verdict::held : verdict::broken;
  out.controls = {{"replacement: two different nodes each time", text_of(d), !d.good()}};
  return out;
}

}  // namespace lethe::audit

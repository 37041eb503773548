#include "runtime/audit/routing_price.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <queue>

#include "runtime/base/check.hpp"

namespace lethe::audit {

namespace {

constexpr uint32_t room_max = 16, nobody = UINT32_MAX;

/// SplitMix64: fast, and the same everywhere.
class numbers {
 public:
  explicit numbers(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  uint32_t below(uint32_t end) { return uint32_t((next() >> 32) * end >> 32); }
  double share() { return (double(next() >> 11) + 0.5) * 0x1p-53; }
  double exponential() { return -std::log(share()); }

 private:
  uint64_t state_;
};

/// When each of a node's requests will have ended, in order.
struct node_queue {
  std::array<double, room_max> ends;
  uint32_t here = 0;

  void leave(double now) {
    uint32_t gone = 0;
    while (gone < here && ends[gone] <= now) ++gone;
    if (gone == 0) return;
    std::copy(ends.begin() + gone, ends.begin() + here, ends.begin());
    here -= gone;
  }
  /// First come, first served: a slot is free when so many have left that fewer than `slots` stay.
  double start(double now, uint32_t slots) const { return here < slots ? now : ends[here - slots]; }
  void add(double end) {
    uint32_t at = here++;
    for (; at > 0 && ends[at - 1] > end; --at) ends[at] = ends[at - 1];
    ends[at] = end;
  }
};

/// Nodes by how many requests they have.
class node_levels {
 public:
  explicit node_levels(uint32_t nodes) : level_(nodes), place_(nodes) {
    for (uint32_t n = 0; n < nodes; ++n) enter(n, 0);
  }
  void move(uint32_t node, uint32_t level) {
    auto& from = levels_[level_[node]];
    place_[from[place_[node]] = from.back()] = place_[node];
    from.pop_back();
    enter(node, level);
  }
  uint32_t one_of_least(numbers& random) const {
    auto least = std::ranges::find_if(levels_, [](const auto& l) { return !l.empty(); });
    return (*least)[random.below(uint32_t(least->size()))];
  }

 private:
  void enter(uint32_t node, uint32_t level) {
    level_[node] = level;
    place_[node] = uint32_t(levels_[level].size());
    levels_[level].push_back(node);
  }
  std::array<std::vector<uint32_t>, room_max + 1> levels_;
  std::vector<uint32_t> level_, place_;
};

class simulation {
 public:
  simulation(routing by, double load, const routing_settings& s)
      : by_(by), s_(s), load_(load), random_(s.seed), nodes_(s.nodes), levels_(s.nodes) {
    check(s.slots > 0 && s.slots + s.waits <= room_max && s.nodes > 0);
    homes_.resize(size_t{s.nodes} * s.slots * 4, nobody);
  }

  routing_point run() {
    const double a_time = load_ * s_.slots * s_.nodes;           // requests
    for (uint64_t i = 0; i < uint64_t(a_time); ++i) request(0);  // those that are there already
    const uint64_t first = s_.requests / 3;
    double now = 0;
    for (uint64_t i = 0; i < s_.requests; ++i) {
      now += random_.exponential() / a_time;
      if (i == first) count_from(now);
      request(now);
    }
    return point(now, double(s_.requests - first));
  }

 private:
  void request(double now) {
    const bool later = random_.share() < s_.later_turns;
    const uint32_t talk = random_.below(uint32_t(homes_.size()));
    const uint32_t home = later ? homes_[talk] : nobody;
    const double work = random_.exponential();
    const uint32_t node = choose(now, home);
    if (node == nobody) return void(++away_);
    const bool cached = by_ == routing::affinity && node == home;
    const double start = nodes_[node].start(now, s_.slots);
    const double takes = cached ? work * (1 - s_.saved) : work;
    cached_ += cached;
    homes_[talk] = node;
    waits_.push_back(float(start - now));
    times_.push_back(float(start - now + takes));
    served_ += takes;
    nodes_[node].add(start + takes);
    if (by_ < routing::shortest) return;
    leaving_.emplace(start + takes, node);
    levels_.move(node, nodes_[node].here);
  }

  uint32_t choose(double now, uint32_t home) {
    if (by_ < routing::shortest) return draw(now);
    for (; !leaving_.empty() && leaving_.top().first <= now; leaving_.pop()) {
      const uint32_t node = leaving_.top().second;
      nodes_[node].leave(now);
      levels_.move(node, nodes_[node].here);
    }
    if (by_ == routing::affinity && home != nobody && admits(nodes_[home]) &&
        nodes_[home].start(now, s_.slots) - now < s_.saved)
      return home;
    const uint32_t node = levels_.one_of_least(random_);
    return admits(nodes_[node]) ? node : nobody;
  }

  uint32_t draw(double now) {
    const uint32_t k = uint32_t(by_) + 1;
    for (uint32_t tries = k * (1 + s_.redraws); tries > 0; --tries) {
      const uint32_t node = random_.below(s_.nodes);
      nodes_[node].leave(now);
      if (admits(nodes_[node])) return node;
    }
    return nobody;
  }

  bool admits(const node_queue& n) const { return n.here < s_.slots + s_.waits; }

  void count_from(double now) {
    counted_from_ = now;
    times_.clear();
    waits_.clear();
    served_ = 0;
    away_ = cached_ = 0;
  }

  static double quantile(std::vector<float>& of, double q) {
    if (of.empty()) return 0;
    auto at = of.begin() + long(q * double(of.size() - 1));
    std::nth_element(of.begin(), at, of.end());
    return double(*at);
  }

  routing_point point(double now, double of) {
    return {.load = load_,
            .busy = served_ / ((now - counted_from_) * s_.slots * s_.nodes),
            .wait_p99 = quantile(waits_, 0.99),
            .p50 = quantile(times_, 0.5),
            .p99 = quantile(times_, 0.99),
            .turned_away = double(away_) / of,
            .from_cache = double(cached_) / of};
  }

  const routing by_;
  const routing_settings& s_;
  const double load_;
  numbers random_;
  std::vector<node_queue> nodes_;
  node_levels levels_;
  using departure = std::pair<double, uint32_t>;
  std::priority_queue<departure, std::vector<departure>, std::greater<>> leaving_;
  std::vector<uint32_t> homes_;  // of conversations, by number
  std::vector<float> times_, waits_;
  double counted_from_ = 0, served_ = 0;
  uint64_t away_ = 0, cached_ = 0;
};

// What an operator would still call well served: of 100 requests 99 end within 1.2 times what 99 of
// them need without any wait, which is ln 100; and so few are turned away.
constexpr double longer_well = 1.2, time_well = longer_well * 4.605, away_well = 1e-3;

using points = std::vector<routing_point>;

/// The highest load at which requests are served well, between the points; 0: at none.
double load_served_well(const points& p) {
  auto excess = [](const routing_point& at) {
    return std::max(at.p99 / time_well, at.turned_away / away_well) - 1;
  };
  auto bad = std::ranges::find_if(p, [&](const auto& at) { return excess(at) > 0; });
  if (bad == p.end()) return p.back().load;
  if (bad == p.begin()) return 0;
  const auto& good = *(bad - 1);
  return good.load + (bad->load - good.load) * excess(good) / (excess(good) - excess(*bad));
}

template <class X, class Y>
plot plotted(std::string title, std::string x, std::string y, const std::vector<points>& all, X at,
             Y value) {
  plot p{.title = std::move(title), .x = std::move(x), .y = std::move(y)};
  for (size_t i = 0; i < all.size(); ++i) {
    curve c{.name = name_of(routings[i])};
    for (const auto& point : all[i]) c.points.emplace_back(at(point), value(point));
    p.curves.push_back(std::move(c));
  }
  return p;
}

std::vector<plot> plots_of(const std::vector<points>& all) {
  auto busy = [](const routing_point& p) { return p.busy; };
  auto load = [](const routing_point& p) { return p.load; };
  const char* utilisation = "share of slots that work";
  const char* times = "mean times of service";
  return {plotted("Median time of a request", utilisation, times, all, busy,
                  [](const routing_point& p) { return p.p50; }),
          plotted("Time of the slowest in a hundred", utilisation, times, all, busy,
                  [](const routing_point& p) { return p.p99; }),
          plotted("Wait of the slowest in a hundred", "load that comes", times, all, load,
                  [](const routing_point& p) { return p.wait_p99; }),
          plotted("Turned away", "load that comes", "share of requests", all, load,
                  [](const routing_point& p) { return p.turned_away; })};
}

/// Nodes that refuse whom they can't begin with at once: only there a second candidate is of use.
plot without_queues(const routing_settings& settings) {
  routing_settings bare = settings;
  bare.waits = 0;
  bare.requests = settings.requests / 4;
  std::vector<points> all;
  for (routing r : {routing::drawn_1, routing::drawn_2, routing::drawn_3}) {
    auto& p = all.emplace_back();
    for (double load : bare.loads) p.push_back(simulate_routing(r, load, bare));
  }
  return plotted(
      "Turned away where nodes have no queue", "load that comes", "share of requests", all,
      [](const routing_point& p) { return p.load; },
      [](const routing_point& p) { return p.turned_away; });
}

/// One draw and no other: then every node is a queue of its own.
control against_arithmetic(const routing_settings& settings) {
  routing_settings once = settings;
  once.redraws = 0;
  constexpr double load = 0.9;
  const double seen = simulate_routing(routing::drawn_1, load, once).turned_away;
  const double exact = turned_away_exactly(load, once.slots, once.waits);
  // Those turned away come in clusters of a node's full times: ten of them count as one.
  const double counted = double(settings.requests) * 2 / 3 / 10;
  const double off = std::abs(seen - exact) / std::sqrt(exact * (1 - exact) / counted);
  return {"a second chance: one draw, no redraw",
          fmt::format("at load {} {:.4f} are turned away; M/M/{}/{} says {:.4f}", load, seen,
                      once.slots, once.slots + once.waits, exact),
          off < 6 && seen > away_well};
}

std::string at_load(const std::vector<points>& all, size_t at) {
  std::string out = fmt::format("at load {}", all[0][at].load);
  for (size_t i = 0; i < all.size(); ++i)
    out +=
        fmt::format("{} {} {:.2f} and {:.2f} ({:.2g} turned away)", i ? "," : ":",
                    name_of(routings[i]), all[i][at].p50, all[i][at].p99, all[i][at].turned_away);
  return out;
}

std::string price_of(const std::vector<points>& all) {
  const double best = load_served_well(all[size_t(routing::shortest)]);
  std::string out;
  for (routing r : {routing::drawn_1, routing::drawn_2, routing::drawn_3}) {
    const double load = load_served_well(all[size_t(r)]);
    out += fmt::format("{}{} serves well up to load {:.2f}", out.empty() ? "" : ", ", name_of(r),
                       load);
    if (load > 0) out += fmt::format(" ({:.0f} % more machines)", 100 * (best / load - 1));
  }
  return out + fmt::format(", shortest queue up to {:.2f}{}", best,
                           best == all[0].back().load ? " and more" : "");
}

}  // namespace

const char* name_of(routing r) {
  constexpr std::array names = {"client draws 1", "client draws 2", "client draws 3",
                                "shortest queue", "cache affinity"};
  return names[size_t(r)];
}

routing_point simulate_routing(routing by, double load, const routing_settings& settings) {
  return simulation(by, load, settings).run();
}

double turned_away_exactly(double load, uint32_t slots, uint32_t waits) {
  double term = 1, sum = 1;
  for (uint32_t n = 1; n <= slots + waits; ++n) sum += term *= load * slots / std::min(n, slots);
  return term / sum;
}

finding measure_routing_price(const routing_settings& settings) {
  std::vector<points> all(routings.size());
  double done = 0;
  for (size_t i = 0; i < routings.size(); ++i)
    for (double load : settings.loads) {
      all[i].push_back(simulate_routing(routings[i], load, settings));
      if (settings.tell) settings.tell(++done / double(routings.size() * settings.loads.size()));
    }
  finding out{.promise = "T", .attacks = "A4"};
  out.what =
      fmt::format("what it costs that clients draw: {} nodes of {} slots, {} requests a point",
                  settings.nodes, settings.slots, settings.requests);
  const size_t at = all[0].size() * 2 / 3;
  out.measured = price_of(all) + "; p50 and p99 " + at_load(all, at);
  out.bound = "none: a price";
  out.controls = {against_arithmetic(settings)};
  out.said = verdict::held;
  out.plots = plots_of(all);
  out.plots.push_back(without_queues(settings));
  out.note = fmt::format(
      "served well: 99 of 100 end within {} times what they need without a wait, fewer than {} are "
      "turned away after {} draws. More candidates shorten no queue: the second is asked when the "
      "first refuses. The routers know every queue at no cost; a cache that saves {:.0f} % of "
      "{:.0f} % of the requests leaves affinity {:.0f} % of the work. More slots a node make "
      "drawing "
      "cheaper, fewer dearer",
      longer_well, away_well, 1 + settings.redraws, 100 * settings.saved,
      100 * settings.later_turns,
      100 * all[size_t(routing::affinity)][at].busy / all[size_t(routing::shortest)][at].busy);
  return out;
}

}  // namespace lethe::audit

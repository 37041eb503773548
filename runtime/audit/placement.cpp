#include "runtime/audit/placement.hpp"

#include <algorithm>
#include <cmath>
#include <thread>

#include "runtime/audit/small_client.hpp"
#include "runtime/log/draw.hpp"

namespace lethe::audit {

namespace {

constexpr size_t tokens_each = 256, spare = 3;  // of three, one is for redraws

/// What a client's application says in one turn, with all that it said before.
std::string body_of(uint32_t user, uint32_t talk, uint32_t turn) {
  std::string said;
  for (uint32_t t = 0; t <= turn; ++t)
    said += fmt::format("{}\"words of turn {}\"", t ? "," : "", t);
  return fmt::format(R"({{"user":{},"talk":{},"turn":{},"said":[{}]}})", user, talk, turn, said);
}

class asking {
 public:
  asking(const placement_settings& s, small_cluster& cluster) : s_(s), cluster_(cluster) {
    out_.shares = shares_of(cluster.nodes());
    out_.users = s.users;
    out_.talks = s.talks;
    out_.turns = s.turns;
  }

  result<placement> run() {
    const auto tokens = cluster_.sell(tokens_each);
    for (uint32_t u = 0; u < s_.users; ++u) {
      auto made = small_client::start(cluster_, u, tokens);
      if (!made) return made.why();
      clients_.push_back(*std::move(made));
    }
    const uint32_t a_round = uint32_t(tokens_each - tokens_each / spare) / s_.turns;
    for (uint32_t first = 0; first < s_.talks; first += a_round) {
      if (auto ok = round(first, std::min(first + a_round, s_.talks)); !ok) return ok.why();
      if (s_.tell) s_.tell(double(first) / s_.talks);
    }
    return std::move(out_);
  }

 private:
  /// Talks of all users, at the same time; the tokens are enough for it.
  result<void> round(uint32_t first, uint32_t end) {
    std::vector<std::atomic<uint32_t>> next(s_.users);
    {
      std::vector<std::jthread> threads;
      for (uint32_t i = 0; i < s_.users * s_.threads; ++i)
        threads.emplace_back([this, first, end, u = i % s_.users, &at = next[i % s_.users]] {
          while (true)
            if (const uint32_t talk = first + at++; talk < end)
              ask_all(u, talk);
            else
              return;
        });
    }
    const auto opened = cluster_.take_openings();
    out_.openings.insert(out_.openings.end(), opened.begin(), opened.end());
    for (auto& c : clients_)
      if (auto ok = c->refill(); !ok) return ok;
    return {};
  }

  void ask_all(uint32_t user, uint32_t talk) {
    for (uint32_t turn = 0; turn < s_.turns; ++turn) {
      const auto end = clients_[user]->ask(body_of(user, talk, turn));
      std::lock_guard lock(mutex_);
      if (end)
        ++out_.answered;
      else if (end.fault == call_fault::busy)
        ++out_.turned_away;
      else if (++out_.failed == 1)
        out_.first_failure = end.why.text;
    }
  }

  const placement_settings& s_;
  small_cluster& cluster_;
  std::vector<std::unique_ptr<small_client>> clients_;
  std::mutex mutex_;  // of what follows
  placement out_;
};

}  // namespace

result<placement> place_requests(const placement_settings& settings) {
  check(settings.full >= 0 && settings.full <= 0.2);  // the tokens of a round are enough
  check(settings.turns > 0 && settings.turns <= 16 && settings.users > 0 && settings.threads > 0);
  check(uint64_t{settings.talks} * settings.turns <= limits::exposed_bodies_max);
  auto cluster = small_cluster::start({.capacities = settings.capacities,
                                       .users = settings.users,
                                       .candidates = settings.candidates,
                                       .all_open = settings.all_open});
  if (!cluster) return cluster.why();
  (*cluster)->schedule = [full = uint64_t(settings.full * 1e6)](const arrival&) -> decision {
    if (uniform_below(1'000'000, fill_random) < full) return {treatment::full_by_its_word};
    return {};
  };
  return asking(settings, **cluster).run();
}

std::vector<std::vector<uint64_t>> table_of(const placement& p) {
  std::vector<std::vector<uint64_t>> table(p.users, std::vector<uint64_t>(p.shares.size()));
  for (const auto& o : p.openings) ++table.at(o.user).at(o.node);
  return table;
}

fit fit_of(const placement& p) {
  std::vector<uint64_t> counts(p.shares.size());
  for (const auto& o : p.openings) ++counts.at(o.node);
  return fit_of(counts, p.shares);
}

equality equality_of(const placement& p) {
  const auto table = table_of(p);
  const uint64_t each = uint64_t{p.talks} * p.turns;
  equality e{.homogeneous = homogeneity(table)};
  auto reach = [](const interval& i) { return std::max(-i.low, i.high); };
  for (size_t u = 0; u < table.size(); ++u)
    for (size_t v = u + 1; v < table.size(); ++v)
      for (size_t n = 0; n < p.shares.size(); ++n) {
        const interval i = difference_interval({table[u][n], each}, {table[v][n], each});
        if (reach(i) > reach(e.widest)) e.widest = i;
      }
  return e;
}

exposed exposed_in(const placement& p, uint32_t k, uint32_t candidates) {
  const uint32_t requests = p.talks * p.turns, in_user = requests / k;
  const size_t nodes = p.shares.size();
  std::vector<bool> saw(size_t{p.users} * in_user * nodes);
  for (const auto& o : p.openings) {
    const uint32_t span = (o.talk * p.turns + o.turn) / k;
    if (span < in_user) saw[(size_t{o.user} * in_user + span) * nodes + o.node] = true;
  }
  exposed worst{.k = k};
  if (in_user == 0) return worst;
  for (uint32_t n = 0; n < nodes; ++n) {
    exposed e{.k = k, .node = n, .due = 1 - std::pow(1 - p.shares[n], k * candidates)};
    e.seen.of = uint64_t{p.users} * in_user;
    for (size_t i = n; i < saw.size(); i += nodes) e.seen.hits += saw[i];
    e.p = binomial_two_sided(e.seen.hits, e.seen.of, e.due);
    if (n == 0 || e.p < worst.p) worst = e;
  }
  return worst;
}

placement made_up(std::vector<double> shares, uint32_t users, uint32_t requests,
                  const std::function<std::vector<uint32_t>(uint32_t user)>& nodes_for) {
  placement p{.shares = std::move(shares), .users = users, .talks = requests, .turns = 1};
  for (uint32_t u = 0; u < users; ++u)
    for (uint32_t talk = 0; talk < requests; ++talk)
      for (uint32_t node : nodes_for(u)) p.openings.push_back({u, talk, 0, node, true});
  return p;
}

std::string text_of(const exposed& e) {
  return fmt::format("k = {}: {:.4f} for {:.4f} (p = {:.2g})", e.k, e.seen.share(), e.due, e.p);
}

}  // namespace lethe::audit

#include "runtime/audit/lies.hpp"

#include "runtime/audit/small_client.hpp"

namespace lethe::audit {

namespace {

constexpr uint32_t share_max = 300, capacity = 100;  // of four nodes each has 250 per mille
constexpr std::string_view roster_path = "roster/";

std::unique_ptr<small_cluster> four_nodes() {
  auto made = small_cluster::start({.capacities = {capacity, capacity, capacity, capacity}});
  check(bool(made));
  return *std::move(made);
}

roster without_one(const roster& of) {
  roster r = of;
  r.leaves.pop_back();
  return r;
}

/// A cluster, what it may show, and what a client makes of it.
class stage {
 public:
  explicit stage(const std::function<void(log_policy&)>& change = {}) : policy(cluster->policy()) {
    if (change) change(policy);
  }

  /// A log of its operator's with those rosters, one after the other.
  willing_log& log_with(const std::vector<roster>& rosters) {
    auto made = cluster->another_log(fmt::format("log-{}", ++number_), policy);
    check(bool(made));
    for (const roster& r : rosters) check(bool((*made)->add(r, cluster->now_s)));
    logs_.push_back(*std::move(made));
    return *logs_.back();
  }
  void show(const willing_log& log) { cluster->log_shown = &log; }

  small_client& client() {
    if (!client_) {
      auto made = small_client::start(*cluster, 0, 4);
      check(bool(made));
      client_ = *std::move(made);
    }
    return *client_;
  }
  told_lie look(std::string lie) {
    const auto end = client().look();
    return {std::move(lie), end ? "nothing: it believes it" : end.why.text,
            end.fault == call_fault::trust};
  }
  /// Refused: after one draw, and no node has opened what it was not drawn for.
  told_lie ask(std::string lie, call_fault as) {
    const auto end = client().ask("{}");
    bool elsewhere = false;
    for (const auto& o : cluster->take_openings()) elsewhere |= !o.answered;
    return {std::move(lie), end ? "nothing: it believes it" : end.why.text,
            end.fault == as && end.draws == 1 && !elsewhere};
  }

  std::unique_ptr<small_cluster> cluster = four_nodes();
  log_policy policy;

 private:
  uint32_t number_ = 0;
  std::vector<std::unique_ptr<willing_log>> logs_;
  std::unique_ptr<small_client> client_;
};

using lie = std::function<told_lie()>;

told_lie split_roster() {
  stage s;
  s.cluster->shows = [&](std::string_view path) -> std::optional<std::vector<std::byte>> {
    if (!path.starts_with(roster_path)) return {};
    return without_one(s.cluster->nodes()).to_bytes();
  };
  return s.look("a split roster: one client is served another than the logged one");
}

/// `seen_first`: the client has a memory to hold it against.
told_lie split_log(bool seen_first, bool grown) {
  stage s;
  const roster other = without_one(s.cluster->nodes());
  const auto& fork = s.log_with(grown ? std::vector{other, other} : std::vector{other});
  if (seen_first) check(bool(s.client().look()));
  s.show(fork);
  return s.look(grown ? "a split log that grew on, signed and witnessed like the other"
                      : "a split log, signed and witnessed like the other");
}

told_lie rewound_log() {
  stage s;
  s.show(s.log_with({s.cluster->nodes(), s.cluster->nodes()}));
  check(bool(s.client().look()));
  s.cluster->log_shown = nullptr;  // its first entries
  return s.look("a rewound log: the roster before the last is the last again");
}

told_lie stale_head() {
  stage s;
  s.cluster->now_s += 300;
  return s.look("a stale head: witnessed 300 s ago");
}

told_lie stale_roster() {
  stage s;
  s.show(s.log_with({s.cluster->nodes(), without_one(s.cluster->nodes())}));
  s.cluster->shows = [&](std::string_view path) -> std::optional<std::vector<std::byte>> {
    if (!path.starts_with(roster_path)) return {};
    return s.cluster->nodes().to_bytes();
  };
  return s.look("a stale roster: the epoch before is served for the newest");
}

told_lie old_roster() {
  stage s;
  s.cluster->now_s += 1801;
  auto& log = s.log_with({});
  check(bool(log.add(s.cluster->nodes(), s.cluster->now_s - 1801)));
  check(bool(log.cosign(s.cluster->now_s)));
  s.show(log);
  return s.look("a stale roster under a fresh head: no other came for 1,801 s");
}

told_lie inflated(bool in_table) {
  stage s([&](log_policy& p) {
    if (in_table) p.classes.begin()->second = 3 * capacity;
  });
  roster r = s.cluster->nodes();
  for (auto& leaf : r.leaves) {
    if (!in_table && &leaf != &r.leaves[0]) continue;
    leaf.capacity = 3 * capacity;
    s.cluster->sign(leaf);
  }
  s.show(s.log_with({r}));
  return s.look("inflated capacity: three times what the logged table gives its class");
}

told_lie unsigned_capacity() {
  stage s;
  roster r = s.cluster->nodes();
  r.leaves[0].not_after += 1;
  s.show(s.log_with({r}));
  return s.look("a leaf that its identity did not sign");
}

told_lie large_share(uint32_t most) {
  stage s([&](log_policy& p) { p.share_max_permille = most; });
  s.show(s.log_with({without_one(s.cluster->nodes())}));
  return s.look("a node with a third of all capacity where 300 per mille are promised");
}

told_lie grown(uint32_t most) {
  stage s([&](log_policy& p) { p.growth_max_permille = most; });
  const roster all = s.cluster->nodes(), half = without_one(without_one(all));
  s.show(s.log_with({half}));
  check(bool(s.client().look()));
  s.show(s.log_with({half, all}));
  return s.look("capacity that doubles from one epoch to the next");
}

told_lie few_nodes() {
  stage s([](log_policy& p) { p.nodes_min = 5; });
  s.show(s.log_with({s.cluster->nodes()}));
  return s.look("fewer nodes than the policy promises");
}

told_lie lesser_policy(const char* told, const std::function<void(log_policy&)>& change) {
  stage s(change);
  s.show(s.log_with({s.cluster->nodes()}));
  return s.look(told);
}

told_lie unlogged_keys() {
  stage s;
  s.cluster->other_keys_shown = true;
  return s.look("gateway keys for one client: they are not logged");
}

told_lie treated(const char* told, treatment how, call_fault as) {
  stage s;
  s.cluster->schedule = [=](const arrival&) { return decision{how}; };
  return s.ask(told, as);
}

told_lie stranger_answers() {
  stage s;
  s.cluster->another_answers = true;
  return s.ask("an answer of a node that was not drawn", call_fault::answer);
}

const std::vector<lie> lies = {
    split_roster,
    [] { return split_log(true, false); },
    [] { return split_log(true, true); },
    rewound_log,
    stale_head,
    stale_roster,
    old_roster,
    [] { return inflated(false); },
    unsigned_capacity,
    [] { return large_share(share_max); },
    [] { return grown(500); },
    few_nodes,
    [] {
      return lesser_policy("a policy with two candidates where the trust file takes one",
                           [](log_policy& p) { p.candidates = 2; });
    },
    [] {
      return lesser_policy("a policy with more redraws than the trust file takes",
                           [](log_policy& p) { p.redraws = 9; });
    },
    unlogged_keys,
    [] {
      return treated("a full node by hearsay, so that the client draws again",
                     treatment::full_by_hearsay, call_fault::busy);
    },
    [] {
      return treated("a full node by another node's word", treatment::full_by_another,
                     call_fault::trust);
    },
    [] {
      return treated("the request moved to every other node", treatment::moved,
                     call_fault::gateway);
    },
    stranger_answers,
};

control believed(const char* without, const told_lie& t) {
  return {without, fmt::format("{}: the client says {}", t.lie, t.said), !t.refused};
}

control honest() {
  stage s;
  const bool looks = bool(s.client().look()), answers = bool(s.client().ask("{}"));
  return {"any lie",
          looks && answers ? "the honest cluster is believed and answers"
                           : "the honest cluster is refused, too",
          looks && answers};
}

}  // namespace

std::vector<told_lie> tell_lies() {
  std::vector<told_lie> told;
  for (const lie& l : lies) told.push_back(l());
  return told;
}

finding measure_lies() {
  finding out{.promise = "T, V", .attacks = "A4"};
  out.what = "a gateway, directory, scheduler or log that tells one client something else";
  const auto told = tell_lies();
  size_t refused = 0;
  for (const auto& t : told) {
    refused += t.refused;
    out.note += fmt::format("{}{}: {}\"{}\"", out.note.empty() ? "" : "; ", t.lie,
                            t.refused ? "" : "NOT REFUSED, ", t.said);
  }
  out.measured = fmt::format("{} of {} lies refused", refused, told.size());
  out.bound = "all";
  out.said = refused == told.size() ? verdict::held : verdict::broken;
  out.controls = {honest(), believed("memory of the head that it saw", split_log(false, false)),
                  believed("a table with that class's capacity", inflated(true)),
                  believed("a bound on a node's share", large_share(1000)),
                  believed("a bound on growth", grown(1'000'000))};
  return out;
}

}  // namespace lethe::audit

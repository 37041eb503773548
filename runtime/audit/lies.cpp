#include "runtime/audit/lies.hpp"

#include "runtime/audit/small_client.hpp"

namespace lethe::audit {

namespace {

constexpr uint32_t capacity = 100;  // of four nodes: each has 250 per mille
constexpr uint32_t share_max = 300, growth_max = 500;
constexpr std::string_view nothing_said = "nothing: it believes it";

roster without_one(const roster& of) {
  roster r = of;
  r.leaves.pop_back();
  return r;
}

using bytes = std::vector<std::byte>;

/// One lie: what the cluster shows, and what a client of its own makes of it. Whatever fails here
/// is told as the client's word, and the lie isn't refused.
class stage {
 public:
  explicit stage(small_cluster& c, const std::function<void(log_policy&)>& change = {})
      : cluster(c), policy(c.policy()), began_s_(c.now_s) {
    if (change) change(policy);
  }
  ~stage() {
    cluster.schedule = {};
    cluster.shows = {};
    cluster.log_shown = nullptr;
    cluster.other_keys_shown = cluster.another_answers = false;
    cluster.now_s = began_s_;
    cluster.take_openings();
  }
  stage(const stage&) = delete;

  /// A log of its operator's with those rosters, one after the other.
  willing_log* log_with(const std::vector<roster>& rosters) {
    auto made = cluster.another_log(policy);
    if (!made) return goes_wrong(made.why()), nullptr;
    logs_.push_back(*std::move(made));
    for (const roster& r : rosters) must(logs_.back()->add(r, cluster.now_s));
    return logs_.back().get();
  }
  void show(const willing_log* log) { cluster.log_shown = log; }
  void show_roster(roster served) {
    cluster.shows = [served = served.to_bytes()](std::string_view path) -> std::optional<bytes> {
      if (!path.starts_with("roster/")) return {};
      return served;
    };
  }
  /// What the client believes before the lie.
  void look_first() {
    if (client())
      if (auto end = client_->look(); !end) goes_wrong(end.why);
  }

  told_lie look(std::string lie) {
    if (!client()) return {std::move(lie), trouble_};
    return told(std::move(lie), client_->look(), call_fault::trust);
  }
  /// Refused: after one draw, and no node has opened what it was not drawn for.
  told_lie ask(std::string lie, call_fault as) {
    if (!client()) return {std::move(lie), trouble_};
    if (auto end = client_->look(); !end) goes_wrong(end.why);
    const auto end = client_->ask("{}");
    if (end.draws != 1) goes_wrong({"it draws again"});
    for (const auto& o : cluster.take_openings())
      if (!o.answered) goes_wrong({"another node opened it"});
    return told(std::move(lie), end, as);
  }
  void must(const result<void>& ok) {
    if (!ok) goes_wrong(ok.why());
  }

  small_cluster& cluster;
  log_policy policy;

 private:
  small_client* client() {
    if (client_ || !trouble_.empty()) return trouble_.empty() ? client_.get() : nullptr;
    auto made = small_client::start(cluster, 0, cluster.sell(1));
    if (!made) return goes_wrong(made.why()), nullptr;
    client_ = *std::move(made);
    return client_.get();
  }
  void goes_wrong(const error& why) {
    if (trouble_.empty()) trouble_ = why.text;
  }
  told_lie told(std::string lie, const call_end& end, call_fault as) const {
    if (!trouble_.empty()) return {std::move(lie), trouble_};
    return {std::move(lie), end ? std::string(nothing_said) : end.why.text, end.fault == as};
  }

  const uint64_t began_s_;
  std::vector<std::unique_ptr<willing_log>> logs_;
  std::unique_ptr<small_client> client_;
  std::string trouble_;
};

told_lie split_roster(small_cluster& c) {
  stage s(c);
  s.show_roster(without_one(c.nodes()));
  return s.look("a split roster: one client is served another than the logged one");
}

/// `seen_first`: the client has a memory to hold it against.
told_lie split_log(small_cluster& c, bool seen_first, bool grown) {
  stage s(c);
  const roster other = without_one(c.nodes());
  const auto* fork = s.log_with(grown ? std::vector{other, other} : std::vector{other});
  if (seen_first) s.look_first();
  s.show(fork);
  return s.look(grown ? "a split log that grew on, signed and witnessed like the other"
                      : "a split log, signed and witnessed like the other");
}

told_lie rewound_log(small_cluster& c) {
  stage s(c);
  s.show(s.log_with({c.nodes(), c.nodes()}));
  s.look_first();
  s.show(nullptr);  // its first entries
  return s.look("a rewound log: the roster before the last is the last again");
}

told_lie stale_head(small_cluster& c) {
  stage s(c);
  c.now_s += 300;
  return s.look("a stale head: witnessed 300 s ago");
}

told_lie stale_roster(small_cluster& c) {
  stage s(c);
  s.show(s.log_with({c.nodes(), without_one(c.nodes())}));
  s.show_roster(c.nodes());
  return s.look("a stale roster: the epoch before is served for the newest");
}

told_lie old_roster(small_cluster& c) {
  stage s(c);
  c.now_s += 1801;
  if (auto* log = s.log_with({})) {
    s.must(log->add(c.nodes(), c.now_s - 1801));
    s.must(log->cosign(c.now_s));
    s.show(log);
  }
  return s.look("a stale roster under a fresh head: no other came for 1,801 s");
}

told_lie inflated(small_cluster& c, bool in_table) {
  stage s(c, [&](log_policy& p) {
    if (in_table) p.classes.begin()->second = 3 * capacity;
  });
  roster r = c.nodes();
  for (size_t i = 0; i < (in_table ? r.leaves.size() : 1); ++i) {
    r.leaves[i].capacity = 3 * capacity;
    c.sign(r.leaves[i]);
  }
  s.show(s.log_with({r}));
  return s.look("inflated capacity: three times what the logged table gives its class");
}

told_lie unsigned_leaf(small_cluster& c) {
  stage s(c);
  roster r = c.nodes();
  r.leaves[0].not_after += 1;
  s.show(s.log_with({r}));
  return s.look("a leaf that its identity did not sign");
}

told_lie large_share(small_cluster& c, uint32_t most) {
  stage s(c, [&](log_policy& p) { p.share_max_permille = most; });
  s.show(s.log_with({without_one(c.nodes())}));
  return s.look("a node with a third of all capacity where 300 per mille are promised");
}

told_lie grown(small_cluster& c, uint32_t most) {
  stage s(c, [&](log_policy& p) { p.growth_max_permille = most; });
  const roster half = without_one(without_one(c.nodes()));
  s.show(s.log_with({half}));
  s.look_first();
  s.show(s.log_with({half, c.nodes()}));
  return s.look("capacity that doubles from one epoch to the next");
}

told_lie lesser_policy(small_cluster& c, const char* told,
                       const std::function<void(log_policy&)>& change) {
  stage s(c, change);
  s.show(s.log_with({c.nodes()}));
  return s.look(told);
}

told_lie unlogged_keys(small_cluster& c) {
  stage s(c);
  c.other_keys_shown = true;
  return s.look("gateway keys for one client: they are not logged");
}

told_lie treated(small_cluster& c, const char* told, treatment how, call_fault as) {
  stage s(c);
  c.schedule = [=](const arrival&) { return decision{how}; };
  return s.ask(told, as);
}

told_lie stranger_answers(small_cluster& c) {
  stage s(c);
  c.another_answers = true;
  return s.ask("an answer of a node that was not drawn", call_fault::answer);
}

std::vector<told_lie> lies_about_log_and_roster(small_cluster& c) {
  return {split_roster(c),
          split_log(c, true, false),
          split_log(c, true, true),
          rewound_log(c),
          stale_head(c),
          stale_roster(c),
          old_roster(c),
          inflated(c, false),
          unsigned_leaf(c),
          large_share(c, share_max),
          grown(c, growth_max),
          lesser_policy(c, "fewer nodes than the policy promises",
                        [](log_policy& p) { p.nodes_min = 5; }),
          lesser_policy(c, "a policy with two candidates where the trust file takes one",
                        [](log_policy& p) { p.candidates = 2; }),
          lesser_policy(c, "a policy with more redraws than the trust file takes",
                        [](log_policy& p) { p.redraws = 9; }),
          unlogged_keys(c)};
}

std::vector<told_lie> lies_about_requests(small_cluster& c) {
  return {
      treated(c, "a full node by hearsay, so that the client draws again",
              treatment::full_by_hearsay, call_fault::busy),
      treated(c, "a full node by another node's word", treatment::full_by_another,
              call_fault::trust),
      treated(c, "the request moved to every other node", treatment::moved, call_fault::gateway),
      stranger_answers(c)};
}

control believed(const char* without, const told_lie& t) {
  return {without, fmt::format("{}: the client says {}", t.lie, t.said), t.said == nothing_said};
}

control honest(small_cluster& c) {
  stage s(c);
  const auto t = s.ask("an honest cluster", call_fault::none);
  return {"any lie", fmt::format("{}: the client says {}", t.lie, t.said), t.refused};
}

std::vector<told_lie> tell_all(small_cluster& c) {
  auto told = lies_about_log_and_roster(c);
  for (auto& t : lies_about_requests(c)) told.push_back(std::move(t));
  return told;
}

auto four_equal_nodes() {
  return small_cluster::start({.capacities = {capacity, capacity, capacity, capacity}});
}

}  // namespace

result<std::vector<told_lie>> tell_lies() {
  auto cluster = four_equal_nodes();
  if (!cluster) return cluster.why();
  return tell_all(**cluster);
}

finding measure_lies() {
  finding out{.promise = "V", .attacks = "A4"};
  out.what = "a gateway, directory, scheduler or log that tells one client something else";
  out.bound = "all are refused";
  auto cluster = four_equal_nodes();
  if (!cluster) return out.note = cluster.why().text, out;
  small_cluster& c = **cluster;
  const auto told = tell_all(c);
  size_t refused = 0;
  for (const auto& t : told) {
    refused += t.refused;
    out.note += fmt::format("{}{}: {}\"{}\"", out.note.empty() ? "" : "; ", t.lie,
                            t.refused ? "" : "NOT REFUSED, ", t.said);
  }
  out.measured = fmt::format("{} of {} lies refused", refused, told.size());
  out.said = refused == told.size() ? verdict::held : verdict::broken;
  out.controls = {honest(c), believed("memory of the head that it saw", split_log(c, false, false)),
                  believed("a table with another capacity", inflated(c, true)),
                  believed("a bound on a node's share", large_share(c, 1000)),
                  believed("a bound on growth", grown(c, 1'000'000))};
  return out;
}

}  // namespace lethe::audit

#include "runtime/grammar/checks.hpp"

#include <algorithm>
#include <utility>

namespace lethe {

namespace {

/// Calls `update` for every node, from the last to the first and back, until none changes.
template <class Update>
void settle(size_t nodes, grammar_builder& from, Update update) {
  for (bool changed = true, down = true; changed && from.work(nodes); down = !down) {
    changed = false;
    for (size_t i = 0; i < nodes; ++i) changed |= update(down ? nodes - 1 - i : i);
  }
}

uint16_t height_of(const grammar& g, const grammar_node& n) {
  auto of = [&g](uint32_t i) { return g.nodes[i].height; };
  switch (n.op) {
    case grammar_op::bytes:
      return of(n.next);
    case grammar_op::split:
      return std::min(of(n.next), of(n.other));
    case grammar_op::call: {
      if (n.next == grammar::end) return of(n.other);  // nothing is left to come back to
      auto inside = uint16_t(std::min<uint32_t>(of(n.other) + 1u, grammar::endless));
      return std::max(inside, of(n.next));
    }
    case grammar_op::ret:
      return 0;
  }
  return 0;
}

void measure_heights(grammar& g, grammar_builder& from) {
  for (auto& n : g.nodes) n.height = grammar::endless;
  settle(g.nodes.size(), from, [&g](size_t i) {
    if (i == grammar::dead) return false;
    uint16_t now = height_of(g, g.nodes[i]);
    return std::exchange(g.nodes[i].height, now) != now;
  });
}

std::pmr::vector<bool> find_nullable(const grammar& g, grammar_builder& from) {
  std::pmr::vector<bool> nullable(g.nodes.size(), false, from.memory());
  settle(g.nodes.size(), from, [&](size_t i) {
    const auto& n = g.nodes[i];
    bool now = n.op == grammar_op::ret ||
               (n.op == grammar_op::split && i != grammar::dead &&
                (nullable[n.next] || nullable[n.other])) ||
               (n.op == grammar_op::call && nullable[n.next] && nullable[n.other]);
    bool changed = now != nullable[i];
    nullable[i] = now;
    return changed;
  });
  return nullable;
}

/// Looks for a call that leads back to itself without a byte in between. The path from rule to
/// rule is walked with a stack of our own: it may be as long as there are rules.
class left_recursion {
 public:
  left_recursion(const grammar& g, grammar_builder& from, const grammar_emitter& by)
      : g_(g),
        by_(by),
        nullable_(find_nullable(g, from)),
        seen_(g.nodes.size(), false, from.memory()),
        colours_(by.rules(), 0, from.memory()),
        work_(from.memory()),
        path_(from.memory()) {}

  /// A rule on such a way round.
  std::optional<uint32_t> find(uint32_t root) {
    enter(root);
    while (!path_.empty()) {
      auto& now = path_.back();
      if (now.next == now.calls.size()) {
        colours_[now.rule] = 2;
        path_.pop_back();
        continue;
      }
      uint32_t to = now.calls[now.next++];
      if (colours_[to] == 1) return to;
      if (colours_[to] == 0) enter(to);
    }
    return {};
  }

 private:
  struct step {
    uint32_t rule;
    std::pmr::vector<uint32_t> calls;
    size_t next = 0;
  };

  void enter(uint32_t rule) {
    colours_[rule] = 1;
    path_.push_back({rule, first_calls(rule)});
  }

  /// Rules that can be called before the rule takes a byte.
  std::pmr::vector<uint32_t> first_calls(uint32_t rule) {
    std::pmr::vector<uint32_t> calls(path_.get_allocator().resource());
    visit(by_.start_of(rule));
    while (!work_.empty()) {
      const auto& n = g_.nodes[work_.back()];
      work_.pop_back();
      if (n.op == grammar_op::split) visit(n.next), visit(n.other);
      if (n.op != grammar_op::call) continue;
      if (n.other > grammar::end) calls.push_back(by_.rule_of(n.other));
      if (nullable_[n.other]) visit(n.next);
    }
    return calls;
  }

  void visit(uint32_t node) {
    if (node <= grammar::end || seen_[node] || g_.nodes[node].height == grammar::endless) return;
    seen_[node] = true;
    work_.push_back(node);
  }

  const grammar& g_;
  const grammar_emitter& by_;
  std::pmr::vector<bool> nullable_, seen_;
  std::pmr::vector<uint8_t> colours_;  // 1: on the path, 2: done
  std::pmr::vector<uint32_t> work_;
  std::pmr::vector<step> path_;
};

}  // namespace

result<void> check_grammar(grammar& g, grammar_builder& from, const grammar_emitter& by,
                           uint32_t root) {
  measure_heights(g, from);
  if (from.failed()) return from.why();
  uint16_t height = g.nodes[g.start].height;
  if (height == grammar::endless)
    return fail("no finite text fits: what it asks for can never end, or contradicts itself");
  if (height > limits::grammar_depth_max)
    return fail("every text that fits is nested more than {} deep", limits::grammar_depth_max);
  left_recursion loops(g, from, by);
  if (from.failed()) return from.why();
  if (auto rule = loops.find(root))
    return fail("{} calls itself before it takes a character; put the recursion at the end",
                from.name_of(*rule));
  return {};
}

namespace {

constexpr uint8_t most_run = grammar::run_max;

/// The longest run that begins behind splits at `at`, at a call that opens no more than `height`.
uint8_t run_from(const grammar& g, uint32_t at, uint16_t height, uint32_t depth = 0) {
  const auto& n = g.nodes[at];
  if (n.op == grammar_op::split && at != grammar::dead && depth < 6)
    return std::max(run_from(g, n.next, height, depth + 1),
                    run_from(g, n.other, height, depth + 1));
  return n.op == grammar_op::call && n.height <= height ? n.run : uint8_t(0);
}

/// Whether a text of plain characters can begin with one of these bytes.
bool begins_plain(const grammar_node& n) {
  for (uint32_t b = n.low; b <= n.high; ++b)
    if ((b >= 0x20 && b < 0x7F && b != '"' && b != '\\') || b >= 0xC2) return true;
  return false;
}

uint8_t reach_of(const grammar& g, const grammar_node& n, bool takes_character) {
  auto of = [&g](uint32_t i) { return g.nodes[i].reach; };
  switch (n.op) {
    case grammar_op::bytes:
      return begins_plain(n) ? most_run : uint8_t(0);
    case grammar_op::split:
      return std::max(of(n.next), of(n.other));
    case grammar_op::call:
      return takes_character ? std::min<uint8_t>(most_run, uint8_t(of(n.next) + 1)) : most_run;
    case grammar_op::ret:
      return most_run;
  }
  return most_run;
}

}  // namespace

void measure_runs(grammar& g, const std::pmr::vector<bool>& one_character) {
  auto takes = [&](const grammar_node& n) {
    return n.op == grammar_op::call && one_character[n.other] && n.height != grammar::endless;
  };
  // Both grow by one at least in each round that changes anything, up to run_max.
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t i = 1; i < g.nodes.size(); ++i) {
      auto& n = g.nodes[i];
      uint8_t reach = reach_of(g, n, takes(n)), run = 0;
      if (takes(n)) run = std::min<uint8_t>(most_run, uint8_t(run_from(g, n.next, n.height) + 1));
      changed |= std::exchange(n.reach, reach) != reach;
      changed |= std::exchange(n.run, run) != run;
    }
  }
}

void find_classes(grammar& g) {
  std::array<bool, 257> begins = {};
  for (const auto& n : g.nodes) {
    if (n.op != grammar_op::bytes) continue;
    begins[n.low] = begins[n.high + 1u] = true;
  }
  uint8_t now = 0;
  for (uint32_t b = 0; b < 256; ++b) g.class_of[b] = now = uint8_t(now + (b > 0 && begins[b]));
  g.classes = now + 1u;
}

}  // namespace lethe

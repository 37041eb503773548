// What stays in the memory of ranks that are processes: after steps, and after one of them is lost.

#include <map>
#include <set>

#include "runtime/audit/memory_scan.hpp"
#include "tests/e2e/rank/rank_processes.hpp"

namespace lethe::e2e {
namespace {

using testing::manner;

class RankProcessMemory : public ::testing::Test {
 protected:
  void SetUp() override {
#ifdef LETHE_SANITIZED
    GTEST_SKIP() << "a sanitizer keeps what was freed";
#endif
  }
};

/// Numbers back to back, wherever.
template <class T>
audit::needle needle_of(const std::vector<T>& values, size_t at, size_t count) {
  return {"numbers", std::string(reinterpret_cast<const char*>(&values[at]), count * sizeof(T))};
}

size_t traces_of(const std::vector<audit::needle>& needles, const processes& others) {
  std::vector<pid_t> all;
  for (const auto& other : others.all) all.push_back(other->pid());
  audit::needle_finder finder(needles);
  audit::memory_search search(finder);
  search.stopped_processes(all);
  EXPECT_GT(search.looked().bytes, 1'000'000u);
  return search.traces().size();
}

/// The leader has its logits before every rank has wiped what it was told of the step.
bool are_soon_gone(const std::vector<audit::needle>& needles, const processes& others) {
  for (auto until = steady::now() + 30s; steady::now() < until;)
    if (traces_of(needles, others) == 0) return true;
  return false;
}

TEST_F(RankProcessMemory, HoldsNothingOfAStepOnceItIsWiped) {
  std::string path = any_model();
  opened m = open(path);
  for (cut c : {cut{2, 1}, cut{1, 2}, cut{2, 2}}) {
    auto prompts = rank_prompts(m.vocab());
    auto logits = testing::run(m.weights(), prompts, {});
    led r(m, {.ranks = c, .model = path});
    // Of the last step: the ids that each rank was told, and the logits. Half of a row of them is
    // what a tensor rank computes.
    std::vector<audit::needle> ids{needle_of(prompts[0], 27, 6)}, rows;
    for (size_t at : {size_t{8}, logits[0][30].size() / 2 + 8, logits[0][30].size() - 16})
      rows.push_back(needle_of(logits[0][30], at, 8));
    EXPECT_EQ(traces_of(rows, r.others), 0u);
    manner how = rank_manner(c);
    auto steps = testing::plan_all(prompts, how);
    auto step = [&](const step_plan& plan, const step_data& data) {
      r.leader->submit(plan, data);
      ASSERT_TRUE(r.leader->wait_oldest());
    };
    for (auto& s : steps) step(s->plan, s->data(m.vocab()));
    // The control: until its sequences end, ranks hold what they computed last.
    EXPECT_GT(traces_of(rows, r.others), 0u) << text_of(c);
    EXPECT_TRUE(are_soon_gone(ids, r.others)) << text_of(c);
    step_plan end;
    for (uint32_t i = 0; i < rank_grid(c).pages; ++i) end.wipes.push_back(i);
    end.wipe_scratch = true;
    step(end, {});
    EXPECT_EQ(traces_of(rows, r.others), 0u) << text_of(c);
  }
}

/// Pieces of what the ranks of a replica in this process hold after the same steps; each is of four
/// numbers that are nowhere by chance.
class pieces {
 public:
  pieces(const opened& m, const cut& c) {
    auto prompts = rank_prompts(m.vocab());
    auto g = grid::start(m.weights(), rank_grid(c));
    if (!g) throw std::runtime_error(g.why().text);
    auto logits = testing::run_on(**g, (*g)->depth(), m.vocab(), prompts, rank_manner(c));
    for (const auto& row : logits[0]) take("logits", std::as_bytes(std::span(row)));
    for (uint32_t r = 0; r < (*g)->ranks(); ++r) {
      const shard& rank = (*g)->rank(r);
      take("activations", rank.scratch());
      for (uint32_t p = 0; p < rank_grid(c).pages; ++p)
        for (bytes_view piece : rank.page(p)) take(keys_of(r), piece);
    }
    all_.push_back({"ids", needle_of(prompts[0], 27, 6).bytes});
  }
  static std::string keys_of(uint32_t rank) {
    return "keys and values of rank " + std::to_string(rank);
  }
  const std::vector<audit::needle>& all() const { return all_; }

 private:
  void take(const std::string& form, bytes_view bytes) {
    for (size_t at = 0; at + 16 <= bytes.size(); at += 64) {
      std::string piece(as_text(bytes.subspan(at, 16)));
      if (std::set<char>(piece.begin(), piece.end()).size() >= 10) all_.push_back({form, piece});
    }
  }
  std::vector<audit::needle> all_;
};

/// How many pieces of each kind a process holds.
std::map<std::string, size_t> held_by(pid_t process, const audit::needle_finder& finder) {
  audit::memory_search search(finder);
  search.stopped_processes({process});
  EXPECT_GT(search.looked().bytes, 1'000'000u);
  std::map<std::string, size_t> held;
  for (const audit::needle& n : search.needles_found()) ++held[n.form];
  return held;
}

std::string counts_in(const std::map<std::string, size_t>& held) {
  std::string text;
  for (const auto& [form, count] : held) text += std::to_string(count) + " of " + form + ", ";
  return text;
}

/// The first control: while the steps are computed, each rank holds its part.
TEST_F(RankProcessMemory, HoldsStepsThatAreNotOver) {
  replica_terms terms{.ranks = {2, 2}, .model = any_model(), .timeout = 10h};
  opened m = open(terms.model);
  const pieces of_steps(m, terms.ranks);
  const audit::needle_finder finder(of_steps.all());
  stepping p(terms);
  for (uint32_t r = 0; r < p.all.size(); ++r)
    EXPECT_GT(held_by(p.all[r]->pid(), finder)[pieces::keys_of(r)], 0u) << "rank " << r;
}

/// Of a replica that has lost a rank in the middle of a step: what the others hold when they have
/// let go of everything.
void expect_left(const char* program, const cut& c, uint32_t victim, int number, bool some) {
  SCOPED_TRACE(text_of(c));
  opened m = open(any_model());
  const pieces of_steps(m, c);
  const audit::needle_finder finder(of_steps.all());
  stepping p({.ranks = c,
              .model = any_model(),
              .timeout = number == SIGSTOP ? 1500ms : 10h,
              .program = program,
              .stays = true});
  p.all[victim]->signal(number);
  for (uint32_t r = 0; r < p.all.size(); ++r) {
    if (r == victim) continue;
    EXPECT_NE(p.all[r]->why_within(60s), "") << "rank " << r;
    auto held = held_by(p.all[r]->pid(), finder);
    EXPECT_EQ(held.contains(pieces::keys_of(r)), some) << "rank " << r;
    EXPECT_EQ(held.empty(), !some) << "rank " << r << ": " << counts_in(held);
  }
}

TEST_F(RankProcessMemory, OfOthersHoldsNothingOfStepsOnceARankIsLost) {
  expect_left(places::keeping_rank_program, {2, 2}, 3, SIGKILL, false);
  expect_left(places::keeping_rank_program, {2, 2}, 0, SIGKILL, false);
  expect_left(places::keeping_rank_program, {2, 2}, 2, SIGSTOP, false);
  expect_left(places::keeping_rank_program, {4, 1}, 1, SIGKILL, false);
}

/// The second control: the same search of the same end finds what nobody has wiped.
TEST_F(RankProcessMemory, OfOthersHoldsStepsThatNobodyWipes) {
  expect_left(places::unwiped_rank_program, {2, 2}, 3, SIGKILL, true);
}

}  // namespace
}  // namespace lethe::e2e

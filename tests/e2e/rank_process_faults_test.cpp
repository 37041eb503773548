// What a rank that is killed or stopped does to the other ranks, which are processes, too.

#include "runtime/audit/memory_scan.hpp"
#include "tests/e2e/rank/rank_processes.hpp"

namespace lethe::e2e {
namespace {

/// Longer than any test waits: who ends before has not ended for lateness.
constexpr std::chrono::milliseconds ages = 10h;
constexpr std::chrono::milliseconds soon = 1500ms;
/// With the machine.
constexpr std::chrono::milliseconds patience = 60s;

void expect_others_end(processes& p, uint32_t victim, const std::string& reason) {
  for (uint32_t r = 0; r < p.all.size(); ++r) {
    if (r == victim) continue;
    EXPECT_EQ(p.all[r]->ended_within(patience), 1) << "rank " << r << " of " << p.all.size();
    std::string why = p.all[r]->why();
    EXPECT_NE(why.find(reason), std::string::npos) << "rank " << r << ": " << why;
  }
}

std::string gone(uint32_t rank) { return "rank " + std::to_string(rank) + " is gone"; }

/// Nobody needs the timeout to notice: a link ends with its process.
void expect_death_is_seen(const cut& c, uint32_t victim) {
  SCOPED_TRACE(text_of(c));
  stepping p({.ranks = c, .model = any_model(), .timeout = ages});
  p.all[victim]->signal(SIGKILL);
  expect_others_end(p, victim, gone(victim));
}

TEST(RankProcessFaults, EndEveryOtherRankWhenOneIsKilled) {
  expect_death_is_seen({2, 1}, 1);
  expect_death_is_seen({1, 2}, 1);
  expect_death_is_seen({2, 2}, 3);
  expect_death_is_seen({4, 1}, 2);
}

TEST(RankProcessFaults, EndEveryOtherRankWhenTheLeaderIsKilled) { expect_death_is_seen({2, 2}, 0); }

/// The timeout, and nothing else, is what ends the others: of two replicas that lose a rank in the
/// same way, the one that has a short one ends while the other one, which was first, still waits.
void expect_silence_is_seen(const cut& c, uint32_t victim) {
  SCOPED_TRACE(text_of(c));
  stepping waits({.ranks = c, .model = any_model(), .timeout = ages});
  stepping ends({.ranks = c, .model = any_model(), .timeout = soon});
  waits.all[victim]->signal(SIGSTOP);
  ends.all[victim]->signal(SIGSTOP);
  expect_others_end(ends, victim, "did not answer within " + std::to_string(soon.count()) + " ms");
  for (auto& rank : waits.all) EXPECT_TRUE(rank->runs()) << rank->why_within(0s);
  waits.all[victim]->signal(SIGKILL);
  expect_others_end(waits, victim, gone(victim));
}

TEST(RankProcessFaults, EndEveryOtherRankWhenOneIsStopped) {
  expect_silence_is_seen({2, 1}, 1);
  expect_silence_is_seen({1, 2}, 1);
  expect_silence_is_seen({2, 2}, 2);
  expect_silence_is_seen({4, 1}, 2);
}

TEST(RankProcessFaults, EndIdleRanksWhenTheLeaderIsKilled) {
  replica_terms terms{.ranks = {2, 1}, .model = any_model()};
  opened m = open(terms.model);
  (void)keys();  // before there are two of us
  pid_t leads = fork();
  if (leads == 0) {
    led r(m, terms);
    r.others.all[0].release();
    raise(SIGSTOP);
    _exit(0);
  }
  // The process that leads has started the other: both are found by who their parent is.
  int status = 0;
  ASSERT_EQ(waitpid(leads, &status, WUNTRACED), leads);
  ASSERT_TRUE(WIFSTOPPED(status));
  auto family = audit::family_of(leads);
  ASSERT_EQ(family.size(), 2u);
  kill(leads, SIGKILL);
  waitpid(leads, &status, 0);
  for (auto until = steady::now() + 10s; kill(family[1], 0) == 0 && steady::now() < until;)
    std::this_thread::sleep_for(5ms);
  EXPECT_NE(kill(family[1], 0), 0);
}

}  // namespace
}  // namespace lethe::e2e

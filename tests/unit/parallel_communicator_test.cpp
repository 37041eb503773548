#include "parallel/communicator.hpp"

#include <gtest/gtest.h>

#include <random>

#include "parallel/local_communicator.hpp"
#include "tests/unit/parallel_gloo_group.hpp"

// What every communicator promises, whether its ranks are threads or processes.

namespace lethe::testing {
namespace {

using ends = std::vector<std::unique_ptr<communicator>>;
using extent = communicator::extent;

std::vector<std::vector<float>> random_rows(uint32_t ranks, size_t count) {
  std::mt19937 random(ranks * 1000 + uint32_t(count));
  std::vector<std::vector<float>> rows(ranks, std::vector<float>(count));
  for (auto& row : rows)
    for (float& x : row) x = std::ldexp(float(int(random())), -int(random() % 60));
  return rows;
}

/// ((0+1)+(2+3))+..., a rank without a partner passing as it is.
std::vector<float> tree_sum(std::vector<std::vector<float>> level) {
  while (level.size() > 1) {
    std::vector<std::vector<float>> next;
    for (size_t i = 0; i < level.size(); i += 2) {
      next.push_back(level[i]);
      if (i + 1 == level.size()) break;
      for (size_t k = 0; k < level[i].size(); ++k) next.back()[k] += level[i + 1][k];
    }
    level = next;
  }
  return level[0];
}

std::vector<extent> thirds(size_t count, uint32_t ranks) {
  std::vector<extent> parts;
  for (size_t r = 0; r < ranks; ++r) parts.push_back({count * r * r / (ranks * ranks), 0});
  for (size_t r = 0; r < ranks; ++r)
    parts[r].count = (r + 1 < ranks ? parts[r + 1].offset : count) - parts[r].offset;
  return parts;
}

struct implementation {
  const char* name;
  bool gloo = false, spin = false, protected_link = false;
};

class Communicator : public ::testing::TestWithParam<implementation> {
 protected:
  static ends make_group(uint32_t size) {
    auto [name, gloo, spin, protected_link] = GetParam();
    if (!gloo) return make_local_group(size, spin);
    ends group;
    for (auto& end : gloo_group_of(size, [=](uint32_t r) {
           gloo_config c = gloo_rank(r, size, protected_link);
           c.spin = spin;
           return c;
         }))
      group.push_back(std::move(end));
    return group;
  }
};
INSTANTIATE_TEST_SUITE_P(
    All, Communicator,
    ::testing::Values(implementation{"LocalSpinning", false, true}, implementation{"LocalAsleep"},
                      implementation{"GlooSealedSpinning", true, true},
                      implementation{"GlooSealed", true},
                      implementation{"GlooProtectedSpinning", true, true, true},
                      implementation{"GlooProtected", true, false, true}),
    [](const auto& p) { return p.param.name; });

TEST_P(Communicator, ReducesInTheTreeOfRanksToTheSameBitsEverywhere) {
  for (uint32_t ranks : {1, 2, 3, 4, 5, 6, 7, 8})
    for (size_t count : {0, 1, 5, 3000, 70'000, 300'000}) {
      if (count > 3000 && ranks % 3 != 2) continue;  // more than one round, or than one hop
      ends group = make_group(ranks);
      auto rows = random_rows(ranks, count);
      auto want = tree_sum(rows);
      on_all(ranks, [&](uint32_t r) { ASSERT_TRUE(group[r]->all_reduce(rows[r])); });
      for (const auto& row : rows) EXPECT_TRUE(row == want) << ranks << " ranks, " << count;
    }
}

TEST_P(Communicator, ScattersTheSameSums) {
  for (uint32_t ranks : {1, 3, 4}) {
    ends group = make_group(ranks);
    auto rows = random_rows(ranks, 2500);
    auto want = tree_sum(rows);
    auto parts = thirds(2500, ranks);
    on_all(ranks, [&](uint32_t r) { ASSERT_TRUE(group[r]->reduce_scatter(rows[r], parts)); });
    for (uint32_t r = 0; r < ranks; ++r)
      for (size_t i = parts[r].offset; i < parts[r].offset + parts[r].count; ++i)
        ASSERT_EQ(rows[r][i], want[i]);
  }
}

TEST_P(Communicator, GathersUnevenParts) {
  for (uint32_t ranks : {1, 2, 5}) {
    ends group = make_group(ranks);
    auto rows = random_rows(ranks, 700);
    auto parts = thirds(700, ranks);
    std::vector<float> want(700);
    for (uint32_t r = 0; r < ranks; ++r)
      std::copy_n(rows[r].begin() + parts[r].offset, parts[r].count,
                  want.begin() + parts[r].offset);
    on_all(ranks, [&](uint32_t r) { ASSERT_TRUE(group[r]->all_gather(rows[r], parts)); });
    for (const auto& row : rows) EXPECT_TRUE(row == want);
  }
}

TEST_P(Communicator, BroadcastsFromAnyRoot) {
  ends group = make_group(3);
  std::vector<std::vector<float>> rows = random_rows(3, 99), before = rows;
  on_all(3, [&](uint32_t r) {
    ASSERT_TRUE(group[r]->broadcast(std::as_writable_bytes(std::span(rows[r])), 2));
  });
  for (const auto& row : rows) EXPECT_TRUE(row == before[2]);
}

TEST_P(Communicator, KeepsManyCallsApart) {
  ends group = make_group(3);
  on_all(3, [&](uint32_t r) {
    for (uint32_t i = 0; i < 300; ++i) {
      std::vector<float> x(7, float(i + r));
      ASSERT_TRUE(group[r]->all_reduce(x));
      ASSERT_EQ(x[6], float(3 * i + 3));
      ASSERT_TRUE(group[r]->barrier());
    }
  });
}

TEST_P(Communicator, DeliversMessagesInOrderOutOfTwoBuffersInTurn) {
  ends group = make_group(2);
  std::thread sender([&] {
    std::vector<uint32_t> buffers[2] = {std::vector<uint32_t>(50), std::vector<uint32_t>(50)};
    for (uint32_t i = 0; i < 200; ++i) {
      auto& b = buffers[i % 2];
      std::fill(b.begin(), b.end(), i);
      ASSERT_TRUE(group[0]->send(std::as_bytes(std::span(b)), 1));
    }
    ASSERT_TRUE(group[0]->flush());
  });
  std::vector<uint32_t> got(50);
  for (uint32_t i = 0; i < 200; ++i) {
    ASSERT_TRUE(group[1]->recv(std::as_writable_bytes(std::span(got)), 0));
    ASSERT_EQ(got[0], i);
    ASSERT_EQ(got[49], i);
  }
  sender.join();
}

TEST_P(Communicator, ReturnsFromTheFirstSendBeforeAnybodyReceives) {
  ends group = make_group(2);
  float x = 1, y = 0;
  ASSERT_TRUE(group[0]->send(std::as_bytes(std::span(&x, 1)), 1));
  ASSERT_TRUE(group[1]->recv(std::as_writable_bytes(std::span(&y, 1)), 0));
  ASSERT_TRUE(group[0]->flush());
  EXPECT_EQ(y, 1);
}

TEST_P(Communicator, SendsBothWaysAtOnceMoreThanAnySocketHolds) {
  ends group = make_group(2);
  on_all(2, [&](uint32_t r) {
    std::vector<uint32_t> mine[2] = {std::vector<uint32_t>(2'000'000, r + 1),
                                     std::vector<uint32_t>(2'000'000, r + 11)};
    std::vector<uint32_t> theirs(2'000'000);
    for (uint32_t i = 0; i < 4; ++i) {
      ASSERT_TRUE(group[r]->send(std::as_bytes(std::span(mine[i % 2])), 1 - r));
      ASSERT_TRUE(group[r]->recv(std::as_writable_bytes(std::span(theirs)), 1 - r));
      ASSERT_EQ(theirs[0], 2 - r + i % 2 * 10);
      ASSERT_EQ(theirs, std::vector<uint32_t>(theirs.size(), theirs[0]));
    }
    ASSERT_TRUE(group[r]->flush());
  });
}

/// What a stage of a pipeline relies on: its rows are on their way while it computes.
TEST_P(Communicator, DeliversALargeMessageWhileItsSenderDoesSomethingElse) {
  ends group = make_group(2);
  std::vector<uint32_t> sent(4'000'000, 3), got(4'000'000);
  ASSERT_TRUE(group[0]->send(std::as_bytes(std::span(sent)), 1));
  ASSERT_TRUE(group[1]->recv(std::as_writable_bytes(std::span(got)), 0));
  EXPECT_EQ(got, sent);
  ASSERT_TRUE(group[0]->flush());
}

/// A message that nobody asked for yet holds up nothing.
TEST_P(Communicator, ReducesWhileMessagesWait) {
  ends group = make_group(3);
  on_all(3, [&](uint32_t r) {
    uint32_t next = (r + 1) % 3, before = (r + 2) % 3;
    std::vector<float> mine(100'000, float(r)), theirs(100'000), x(50, float(r));
    ASSERT_TRUE(group[r]->send(std::as_bytes(std::span(mine)), next));
    ASSERT_TRUE(group[r]->all_reduce(x));
    ASSERT_EQ(x[49], 3);
    ASSERT_TRUE(group[r]->recv(std::as_writable_bytes(std::span(theirs)), before));
    ASSERT_EQ(theirs[99'999], float(before));
    ASSERT_TRUE(group[r]->barrier());
    ASSERT_TRUE(group[r]->flush());
  });
}

TEST_P(Communicator, RefusesLengthsThatDifferOnEveryRank) {
  ends group = make_group(3);
  on_all(3, [&](uint32_t r) {
    std::vector<float> x(r == 1 ? 10 : 1000);
    auto done = group[r]->all_reduce(x);
    ASSERT_FALSE(done);
    EXPECT_NE(done.why().text.find("ranks differ in what they call, or in lengths; the group is "
                                   "aborted"),
              std::string::npos)
        << done.why().text;
    EXPECT_FALSE(group[r]->barrier());
  });
}

TEST_P(Communicator, RefusesCallsThatDiffer) {
  ends group = make_group(2);
  on_all(2, [&](uint32_t r) {
    std::vector<float> x(8);
    EXPECT_FALSE(r == 0 ? group[r]->all_reduce(x) : group[r]->barrier());
  });
}

TEST_P(Communicator, RefusesPartsBeyondTheData) {
  for (std::vector<extent> parts :
       {std::vector<extent>{{0, 4}, {4, 5}}, std::vector<extent>{{0, 4}, {SIZE_MAX, 2}},
        std::vector<extent>{{0, 4}}}) {
    ends group = make_group(2);
    on_all(2, [&](uint32_t r) {
      std::vector<float> x(8);
      EXPECT_FALSE(group[r]->all_gather(x, parts));
    });
  }
}

TEST_P(Communicator, RefusesAMessageOfAnotherLength) {
  ends group = make_group(2);
  std::vector<float> small(4), large(400);
  ASSERT_TRUE(group[0]->send(std::as_bytes(std::span(small)), 1));
  EXPECT_FALSE(group[1]->recv(std::as_writable_bytes(std::span(large)), 0));
  EXPECT_FALSE(group[0]->flush());
}

TEST_P(Communicator, RefusesRanksThatAreNotThere) {
  float x = 0;
  EXPECT_FALSE(make_group(2)[0]->send(std::as_bytes(std::span(&x, 1)), 2));
  EXPECT_FALSE(make_group(2)[0]->send(std::as_bytes(std::span(&x, 1)), 0));
  EXPECT_FALSE(make_group(2)[0]->recv(std::as_writable_bytes(std::span(&x, 1)), 7));
  EXPECT_FALSE(make_group(2)[0]->broadcast({}, 2));
}

TEST_P(Communicator, HearsOfAnAbortWithoutACall) {
  ends group = make_group(3);
  on_all(3, [&](uint32_t r) {
    ASSERT_TRUE(group[r]->barrier());
    EXPECT_TRUE(group[r]->health());
  });
  group[1]->abort();
  for (uint32_t r : {0, 1, 2})
    while (group[r]->health()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_FALSE(group[2]->barrier());
}

/// Whoever asks does not wait for the one who waits.
TEST_P(Communicator, TellsItsHealthDuringACall) {
  ends group = make_group(2);
  std::thread waiting([&] { EXPECT_TRUE(group[0]->barrier()); });
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(group[0]->health());
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_TRUE(group[1]->barrier());
  waiting.join();
}

// Rank 0 waits for a partner that never comes, in every way there is.
TEST_P(Communicator, WakesWhoeverWaitsWhenAborted) {
  std::vector<float> x(4);
  auto bytes = std::as_writable_bytes(std::span(x));
  std::vector<extent> parts{{0, 2}, {2, 2}};
  std::vector<std::function<result<void>(communicator&)>> calls{
      [&](communicator& c) { return c.all_reduce(x); },
      [&](communicator& c) { return c.all_gather(x, parts); },
      [&](communicator& c) { return c.reduce_scatter(x, parts); },
      [&](communicator& c) { return c.broadcast(bytes, 1); },
      [&](communicator& c) { return c.barrier(); },
      [&](communicator& c) { return c.recv(bytes, 1); },
      [&](communicator& c) {
        auto first = c.send(bytes, 1);
        return first ? c.send(bytes, 1) : first;
      },
      [&](communicator& c) {
        auto first = c.send(bytes, 1);
        return first ? c.flush() : first;
      }};
  for (const auto& call : calls) {
    ends group = make_group(2);
    std::thread waiting([&] { EXPECT_FALSE(call(*group[0])); });
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    group[1]->abort();
    waiting.join();
    EXPECT_FALSE(group[1]->barrier());
    EXPECT_FALSE(group[1]->recv(bytes, 0));
    EXPECT_FALSE(group[0]->send(bytes, 1));
  }
}

}  // namespace
}  // namespace lethe::testing

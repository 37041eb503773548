#include "parallel/local_communicator.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <thread>

namespace lethe {
namespace {

using ends = std::vector<std::unique_ptr<communicator>>;
using extent = communicator::extent;

/// Runs body(rank) on a thread for each rank.
void on_all(uint32_t ranks, const std::function<void(uint32_t)>& body) {
  std::vector<std::thread> threads;
  for (uint32_t r = 0; r < ranks; ++r) threads.emplace_back(body, r);
  for (std::thread& t : threads) t.join();
}

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

class LocalCommunicator : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Waiting, LocalCommunicator, ::testing::Bool(),
                         [](const auto& p) { return p.param ? "Spinning" : "Asleep"; });

TEST_P(LocalCommunicator, ReducesInTheTreeOfRanksToTheSameBitsEverywhere) {
  for (uint32_t ranks : {1, 2, 3, 4, 5, 6, 7, 8})
    for (size_t count : {0, 1, 5, 3000}) {
      ends group = make_local_group(ranks, GetParam());
      auto rows = random_rows(ranks, count);
      auto want = tree_sum(rows);
      on_all(ranks, [&](uint32_t r) { ASSERT_TRUE(group[r]->all_reduce(rows[r])); });
      for (const auto& row : rows) EXPECT_TRUE(row == want) << ranks << " ranks, " << count;
    }
}

TEST_P(LocalCommunicator, ScattersTheSameSums) {
  for (uint32_t ranks : {1, 3, 4}) {
    ends group = make_local_group(ranks, GetParam());
    auto rows = random_rows(ranks, 2500);
    auto want = tree_sum(rows);
    auto parts = thirds(2500, ranks);
    on_all(ranks, [&](uint32_t r) { ASSERT_TRUE(group[r]->reduce_scatter(rows[r], parts)); });
    for (uint32_t r = 0; r < ranks; ++r)
      for (size_t i = parts[r].offset; i < parts[r].offset + parts[r].count; ++i)
        ASSERT_EQ(rows[r][i], want[i]);
  }
}

TEST_P(LocalCommunicator, GathersUnevenParts) {
  for (uint32_t ranks : {1, 2, 5}) {
    ends group = make_local_group(ranks, GetParam());
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

TEST_P(LocalCommunicator, BroadcastsFromAnyRoot) {
  ends group = make_local_group(3, GetParam());
  std::vector<std::vector<float>> rows = random_rows(3, 99), before = rows;
  on_all(3, [&](uint32_t r) {
    ASSERT_TRUE(group[r]->broadcast(std::as_writable_bytes(std::span(rows[r])), 2));
  });
  for (const auto& row : rows) EXPECT_TRUE(row == before[2]);
}

TEST_P(LocalCommunicator, KeepsManyCallsApart) {
  ends group = make_local_group(3, GetParam());
  on_all(3, [&](uint32_t r) {
    for (uint32_t i = 0; i < 300; ++i) {
      std::vector<float> x(7, float(i + r));
      ASSERT_TRUE(group[r]->all_reduce(x));
      ASSERT_EQ(x[6], float(3 * i + 3));
      ASSERT_TRUE(group[r]->barrier());
    }
  });
}

TEST_P(LocalCommunicator, DeliversMessagesInOrderOutOfTwoBuffersInTurn) {
  ends group = make_local_group(2, GetParam());
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

TEST(LocalGroup, ReturnsFromTheFirstSendBeforeAnybodyReceives) {
  ends group = make_local_group(2, false);
  float x = 1, y = 0;
  ASSERT_TRUE(group[0]->send(std::as_bytes(std::span(&x, 1)), 1));
  ASSERT_TRUE(group[1]->recv(std::as_writable_bytes(std::span(&y, 1)), 0));
  ASSERT_TRUE(group[0]->flush());
  EXPECT_EQ(y, 1);
}

TEST(LocalGroup, RefusesLengthsThatDifferOnEveryRank) {
  ends group = make_local_group(3, false);
  on_all(3, [&](uint32_t r) {
    std::vector<float> x(r == 1 ? 10 : 1000);
    auto done = group[r]->all_reduce(x);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.why().text,
              "communicator: ranks differ in what they call, or in lengths; the group is aborted");
    EXPECT_FALSE(group[r]->barrier());
  });
}

TEST(LocalGroup, RefusesCallsThatDiffer) {
  ends group = make_local_group(2, false);
  on_all(2, [&](uint32_t r) {
    std::vector<float> x(8);
    EXPECT_FALSE(r == 0 ? group[r]->all_reduce(x) : group[r]->barrier());
  });
}

TEST(LocalGroup, RefusesPartsBeyondTheData) {
  for (std::vector<extent> parts :
       {std::vector<extent>{{0, 4}, {4, 5}}, std::vector<extent>{{0, 4}, {SIZE_MAX, 2}},
        std::vector<extent>{{0, 4}}}) {
    ends group = make_local_group(2, false);
    on_all(2, [&](uint32_t r) {
      std::vector<float> x(8);
      EXPECT_FALSE(group[r]->all_gather(x, parts));
    });
  }
}

TEST(LocalGroup, RefusesAMessageOfAnotherLength) {
  ends group = make_local_group(2, false);
  std::vector<float> small(4), large(400);
  ASSERT_TRUE(group[0]->send(std::as_bytes(std::span(small)), 1));
  EXPECT_FALSE(group[1]->recv(std::as_writable_bytes(std::span(large)), 0));
  EXPECT_FALSE(group[0]->flush());
}

TEST(LocalGroup, RefusesRanksThatAreNotThere) {
  float x = 0;
  EXPECT_FALSE(make_local_group(2, false)[0]->send(std::as_bytes(std::span(&x, 1)), 2));
  EXPECT_FALSE(make_local_group(2, false)[0]->send(std::as_bytes(std::span(&x, 1)), 0));
  EXPECT_FALSE(make_local_group(2, false)[0]->recv(std::as_writable_bytes(std::span(&x, 1)), 7));
  EXPECT_FALSE(make_local_group(2, false)[0]->broadcast({}, 2));
}

// Rank 0 waits for a partner that never comes, in every way there is.
TEST_P(LocalCommunicator, WakesWhoeverWaitsWhenAborted) {
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
    ends group = make_local_group(2, GetParam());
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
}  // namespace lethe

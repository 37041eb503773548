// The store of an engine's ranks, asked over a socket: what is set is found, and whoever says
// something else is not answered.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <thread>

#include "actors/cluster/child_process.hpp"
#include "actors/cluster/rank_socket.hpp"

namespace lethe {
namespace {

using namespace std::chrono_literals;
deadline in(std::chrono::milliseconds ms) { return std::chrono::steady_clock::now() + ms; }

/// An engine's end, and a rank's.
class RankSocket : public testing::Test {
 protected:
  RankSocket() {
    int both[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both), 0);
    ours_ = owned_fd(both[0]);
    theirs = owned_fd(both[1]);
    thread_ = std::thread([this] { answer_rank(ours_.get(), store); });
  }
  ~RankSocket() override {
    ::shutdown(theirs.get(), SHUT_RDWR);
    join();
  }
  void join() {
    if (thread_.joinable()) thread_.join();
  }

  memory_rank_store store;
  owned_fd theirs;

 private:
  owned_fd ours_;
  std::thread thread_;
};

TEST_F(RankSocket, FindsWhatAnyRankHasSet) {
  rank_socket rank(theirs.get());
  const std::string where = "127.0.0.1:5";
  ASSERT_TRUE(store.set("rank 0", as_bytes(where)));
  ASSERT_TRUE(rank.set("rank 1", as_bytes(where)));
  for (const char* key : {"rank 0", "rank 1"}) {
    auto found = rank.get(key, in(10s));
    ASSERT_TRUE(found) << found.why().text;
    EXPECT_EQ(as_text(*found), where);
  }
  EXPECT_FALSE(rank.set("rank 1", as_bytes(where))) << "each once";
}

TEST_F(RankSocket, SaysThatThereIsNoneInTime) {
  auto none = rank_socket(theirs.get()).get("rank 2", in(20ms));
  ASSERT_FALSE(none);
  EXPECT_NE(none.why().text.find("rank 2"), std::string::npos) << none.why().text;
}

TEST_F(RankSocket, TakesTheLargestValueAndNoLarger) {
  rank_socket rank(theirs.get());
  const std::vector<std::byte> most(rank_store::value_bytes_max), more(most.size() + 1);
  EXPECT_TRUE(rank.set("most", most));
  auto found = rank.get("most", in(10s));
  ASSERT_TRUE(found) << found.why().text;
  EXPECT_EQ(*found, most);
  EXPECT_FALSE(rank.set("more", more));
}

TEST_F(RankSocket, EndsWithWhoeverSaysWhatIsNoMessage) {
  const uint32_t size = UINT32_MAX;
  ASSERT_EQ(::send(theirs.get(), &size, sizeof size, 0), ssize_t(sizeof size));
  join();
}

TEST_F(RankSocket, ARankWhoseEngineIsGoneIsTold) {
  ::shutdown(theirs.get(), SHUT_RDWR);
  join();
  auto none = rank_socket(theirs.get()).get("rank 0", in(10s));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.why().text, "rank store: the engine's process is gone");
}

}  // namespace
}  // namespace lethe

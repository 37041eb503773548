// Where the ranks of an engine come in: who is let in, what they are told, and what is known of
// those that leave.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <csignal>
#include <fstream>

#include "actors/cluster/node.hpp"
#include "actors/cluster/rank_door.hpp"
#include "runtime/crypto/certificate.hpp"
#include "tests/e2e/command.hpp"

namespace lethe {
namespace {

using namespace std::chrono_literals;
deadline in(std::chrono::milliseconds ms) { return std::chrono::steady_clock::now() + ms; }

/// An authority and hosts of it.
class RankDoor : public testing::Test {
 protected:
  RankDoor() : authority_(*make_authority("test", 1)) {
    std::signal(SIGPIPE, SIG_IGN);  // as the program does
    keep("ca.crt", pem_of(authority_.certificate.get()));
    door_ = open({.slot = 3, .epoch = 7, .hosts = {"north", "north", "south"}});
  }

  void keep(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
  }
  /// Of a host that `by` has signed.
  rank_keys keys(const std::string& host, const identity& by) const {
    auto own = make_host(by, host, "127.0.0.1", 1);
    keep("own.crt", pem_of(own->certificate.get()));
    keep("own.key", pem_of(own->key.get()));
    auto made = rank_keys::of({folder_ / "own.crt", folder_ / "own.key", folder_ / "ca.crt", ""});
    if (!made) throw std::runtime_error(made.why().text);
    return *made;
  }
  rank_keys keys(const std::string& host) const { return keys(host, authority_); }
  std::unique_ptr<rank_door> open(rank_door::terms t) const {
    t.address = "127.0.0.1";
    auto made = rank_door::open(t, keys("north"));
    if (!made) throw std::runtime_error(made.why().text);
    return *std::move(made);
  }
  rank_line call(const std::string& as, const std::string& looks_for = "north") const {
    auto line = rank_line::call("127.0.0.1", door_->port(), looks_for, keys(as));
    if (!line) throw std::runtime_error(line.why().text);
    return *std::move(line);
  }
  std::string why_refused(const std::string& as, const rank_claim& claim) const {
    auto line = call(as);
    auto joined = join_engine(line, claim);
    return joined ? "it was let in" : joined.why().text;
  }

  scratch_folder folder_;
  identity authority_;
  std::unique_ptr<rank_door> door_;
};

TEST_F(RankDoor, GivesEachRankTheSecretAndWhatTheOthersHaveSet) {
  auto first = call("north"), second = call("south");
  for (auto [line, rank] : {std::pair(&first, 1u), std::pair(&second, 2u)}) {
    auto secret = join_engine(*line, {3, 7, rank});
    ASSERT_TRUE(secret) << secret.why().text;
    EXPECT_TRUE(std::ranges::equal(secret->view(), door_->secret().view()));
    EXPECT_FALSE(std::ranges::equal(secret->view(), key_bytes(rank_secret_bytes).view()))
        << "no secret";
  }
  const std::string where = "127.0.0.1:5";
  ASSERT_TRUE(door_->store().set("rank 0", as_bytes(where)));
  ASSERT_TRUE(asked_store(first).set("rank 1", as_bytes(where)));
  for (const char* key : {"rank 0", "rank 1"}) {
    auto found = asked_store(second).get(key, in(10s));
    ASSERT_TRUE(found) << found.why().text;
    EXPECT_EQ(as_text(*found), where);
  }
  EXPECT_FALSE(asked_store(second).set("rank 1", as_bytes(where))) << "each once";
  auto none = asked_store(second).get("rank 2", in(20ms));
  ASSERT_FALSE(none);
  EXPECT_NE(none.why().text.find("rank 2"), std::string::npos) << none.why().text;
}

TEST_F(RankDoor, TakesTheLargestValueAndNoLarger) {
  auto line = call("south");
  ASSERT_TRUE(join_engine(line, {3, 7, 2}));
  asked_store rank(line);
  const std::vector<std::byte> most(rank_store::value_bytes_max), more(most.size() + 1);
  EXPECT_TRUE(rank.set("most", most));
  auto found = rank.get("most", in(10s));
  ASSERT_TRUE(found) << found.why().text;
  EXPECT_EQ(*found, most);
  EXPECT_FALSE(rank.set("more", more));
}

TEST_F(RankDoor, RefusesARankThatWasNotPlacedThere) {
  EXPECT_NE(why_refused("south", {3, 8, 2}).find("in epoch 7"), std::string::npos);
  EXPECT_NE(why_refused("south", {4, 7, 2}).find("engine 3"), std::string::npos);
  EXPECT_EQ(why_refused("south", {3, 7, 1}), "ranks: rank 1 is not on host south");
  EXPECT_EQ(why_refused("north", {3, 7, 0}), "ranks: rank 0 is not on host north");
  EXPECT_EQ(why_refused("south", {3, 7, 3}), "ranks: rank 3 is not on host south");
  auto line = call("south");
  ASSERT_TRUE(join_engine(line, {3, 7, 2}));
  EXPECT_EQ(why_refused("south", {3, 7, 2}), "ranks: rank 2 has come already");
  EXPECT_TRUE(door_->health()) << "nobody is lost who was never let in";
}

TEST_F(RankDoor, RefusesWhomAnotherAuthorityHasSigned) {
  auto other = make_authority("test", 1);
  auto line = rank_line::call("127.0.0.1", door_->port(), "north", keys("south", *other));
  // The door's verdict comes behind the handshake.
  EXPECT_FALSE(line && join_engine(*line, {3, 7, 2}));
  auto ours = call("south");
  EXPECT_TRUE(join_engine(ours, {3, 7, 2})) << "the same with our own";
}

TEST_F(RankDoor, ARankLooksWhomItCalls) {
  auto line = rank_line::call("127.0.0.1", door_->port(), "west", keys("south"));
  ASSERT_FALSE(line);
  EXPECT_NE(line.why().text.find("is host north, not west"), std::string::npos) << line.why().text;
}

TEST_F(RankDoor, StrangersWhoSayNothingKeepNobodyOut) {
  std::vector<owned_fd> strangers;
  for (int i = 0; i < 40; ++i) {
    auto& fd = strangers.emplace_back(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in at{.sin_family = AF_INET, .sin_port = htons(door_->port())};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
  }
  auto line = call("south");
  EXPECT_TRUE(join_engine(line, {3, 7, 2}));
}

TEST_F(RankDoor, WhoIsRefusedIsHungUpOn) {
  auto line = call("south");
  EXPECT_FALSE(join_engine(line, {3, 7, 1}));
  line.wait_for_ever();  // and would, if it stayed open
  std::byte more[1];
  EXPECT_FALSE(line.receive(more));
}

TEST_F(RankDoor, WhoWaitsForARankThatLeavesIsToldWhy) {
  {
    auto line = call("south");
    ASSERT_TRUE(join_engine(line, {3, 7, 2}));
    say_end(line, "weights: too few bytes");
  }
  auto none = door_->store().get("rank 2", in(60s));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.why().text, "rank 2: weights: too few bytes");
  EXPECT_EQ(door_->health().why().text, "rank 2: weights: too few bytes");
}

TEST_F(RankDoor, ARankThatSaysWhatIsNoMessageIsLost) {
  auto line = call("south");
  ASSERT_TRUE(join_engine(line, {3, 7, 2}));
  const uint32_t size = UINT32_MAX;
  ASSERT_TRUE(line.send(std::as_bytes(std::span(&size, 1))));
  auto none = door_->store().get("rank 2", in(60s));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.why().text, "rank 2: its process ended");
}

TEST_F(RankDoor, ARankWhoseEngineIsGoneIsTold) {
  auto line = call("south");
  ASSERT_TRUE(join_engine(line, {3, 7, 2}));
  door_.reset();
  auto none = asked_store(line).get("rank 0", in(10s));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.why().text, "ranks: the engine's process is gone");
}

TEST_F(RankDoor, AnEngineEndsThoughARankWaitsForAValue) {
  auto line = call("south");
  ASSERT_TRUE(join_engine(line, {3, 7, 2}));
  asked_store rank(line);
  ASSERT_TRUE(rank.set("rank 2", {}));
  std::thread waits([&] { EXPECT_FALSE(rank.get("rank 0", in(24h))); });
  std::this_thread::sleep_for(100ms);  // most likely it does by now
  door_.reset();                       // and would wait for that day
  waits.join();
}

}  // namespace
}  // namespace lethe

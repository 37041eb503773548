#include <gtest/gtest.h>

#include "tests/unit/parallel_gloo_group.hpp"
#include "tests/unit/parallel_link_proxy.hpp"

// Who may join a group, and what may happen on a link between two ranks.

namespace lethe::testing {
namespace {

using namespace std::chrono_literals;

constexpr size_t seal_bytes = 32 + 16;  // head and tag of a small frame

bool says(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

struct joined {
  std::unique_ptr<gloo_communicator> end;
  std::string why;
};

joined join(gloo_config c, rank_store& store) {
  auto done = gloo_communicator::join(std::move(c), store);
  if (done) return {*std::move(done), {}};
  return {nullptr, done.why().text};
}

gloo_config quick(uint32_t rank, uint32_t size = 2, std::chrono::milliseconds forming = 1500ms) {
  gloo_config c = gloo_rank(rank, size);
  c.forming = forming;
  return c;
}

/// Two ranks, each with its own config and store.
std::array<joined, 2> join_both(gloo_config zero, rank_store& of_zero, gloo_config one,
                                rank_store& of_one) {
  std::array<joined, 2> both;
  std::thread other([&] { both[1] = join(std::move(one), of_one); });
  both[0] = join(std::move(zero), of_zero);
  other.join();
  return both;
}

uint16_t port_of_rank_0(rank_store& store) {
  auto all = store.get("7/tensor 0/0/0", std::chrono::steady_clock::now() + 5s);
  check(bool(all));
  return link_address::read(bytes_view(*all).first(link_address::bytes))->port();
}

TEST(GlooGroup, IsNotFormedWithoutAllRanks) {
  memory_rank_store store;
  joined alone = join(quick(0), store);
  EXPECT_TRUE(says(alone.why, "nobody set 7/tensor 0/0/1 in time")) << alone.why;
  memory_rank_store other;
  joined lonely = join(quick(1), other);
  EXPECT_TRUE(says(lonely.why, "nobody set 7/tensor 0/0/rank_0 in time")) << lonely.why;
}

TEST(GlooGroup, IsFormedInSpiteOfStrangers) {
  memory_rank_store store;
  gloo_ends ends(2);
  std::thread first([&] { ends[0] = join(quick(0, 2, 10s), store).end; });
  std::vector<owned_fd> strangers;
  for (int i = 0; i < 50; ++i) {
    strangers.push_back(connect_to_port(port_of_rank_0(store)));
    if (i % 2 == 0) ::send(strangers.back().get(), "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL);
    if (i % 3 == 0) ::send(strangers.back().get(), std::string(200, 'x').data(), 200, MSG_NOSIGNAL);
  }
  ends[1] = join(quick(1, 2, 10s), store).end;
  first.join();
  ASSERT_TRUE(ends[0] && ends[1]);
  on_all(2, [&](uint32_t r) { EXPECT_TRUE(ends[r]->barrier()); });
}

TEST(GlooGroup, NamesAStrangerWhoCameInARanksPlace) {
  memory_rank_store store;
  joined zero;
  std::thread first([&] { zero = join(quick(0), store); });
  owned_fd stranger = connect_to_port(port_of_rank_0(store));
  ::send(stranger.get(), std::string(200, 'x').data(), 200, MSG_NOSIGNAL);
  ASSERT_TRUE(store.set("7/tensor 0/0/1", blob(link_address::bytes, std::byte{2})));
  first.join();
  EXPECT_EQ(zero.why,
            "communicator: rank 1 did not come to rank 0 in time; refused was a stranger, who said "
            "no hello; see who that is");
}

TEST(GlooGroup, RefusesAnotherSecret) {
  memory_rank_store store;
  gloo_config one = quick(1);
  one.secret = secret_of(2);
  auto [zero, other] = join_both(quick(0), store, std::move(one), store);
  EXPECT_TRUE(says(zero.why, "refused was rank 1, who left without a proof")) << zero.why;
  EXPECT_TRUE(says(other.why, "its proof is wrong; see that both were given the same"))
      << other.why;
}

TEST(GlooGroup, RefusesARankOfAnOldEpoch) {
  memory_rank_store store;
  changing_store of_one(store);
  of_one.key = [](std::string key) { return "7" + key.substr(1); };
  gloo_config one = quick(1);
  one.epoch = 6;
  auto [zero, other] = join_both(quick(0), store, std::move(one), of_one);
  EXPECT_TRUE(says(zero.why, "refused was a rank of epoch 6, and here is epoch 7")) << zero.why;
  EXPECT_TRUE(says(other.why, "there is a rank of epoch 7, and here is epoch 6")) << other.why;
}

TEST(GlooGroup, RefusesARankOfAnotherGroupOrSize) {
  memory_rank_store store;
  changing_store of_one(store);
  of_one.key = [](std::string key) {
    return key.starts_with("7/world/") ? "7/tensor 0/" + key.substr(8) : key;
  };
  gloo_config one = quick(1);
  one.group = "world";
  auto [zero, other] = join_both(quick(0), store, std::move(one), of_one);
  EXPECT_TRUE(says(zero.why, "refused was rank 1 of another group")) << zero.why;
  EXPECT_TRUE(says(other.why, "there is rank 0 of another group")) << other.why;
}

TEST(GlooGroup, RefusesALinkThatOnlyOneCallsProtected) {
  memory_rank_store store;
  gloo_config one = quick(1);
  one.protected_link = true;
  auto [zero, other] = join_both(quick(0), store, std::move(one), store);
  EXPECT_TRUE(says(zero.why, "rank 1, whose config does not say the same of protected_link"));
  EXPECT_TRUE(says(other.why, "rank 0, whose config does not say the same of protected_link"));
}

TEST(GlooGroup, RefusesAnAddressThatIsNone) {
  memory_rank_store store;
  changing_store of_one(store);
  of_one.value = [](const std::string& key, blob& value) {
    if (is_address_of(key, 0)) value.assign(link_address::bytes, std::byte{0xff});
  };
  auto [zero, other] = join_both(quick(0), store, quick(1), of_one);
  EXPECT_TRUE(says(other.why, "an address of family 65535")) << other.why;
  memory_rank_store again;
  changing_store short_one(again);
  short_one.value = [](const std::string& key, blob& value) {
    if (is_address_of(key, 0)) value.resize(5);
  };
  EXPECT_TRUE(
      says(join_both(quick(0), again, quick(1), short_one)[1].why, "an address of 5 bytes"));
  gloo_config unknown = quick(0);
  unknown.address = "localhost";
  EXPECT_TRUE(says(join(std::move(unknown), store).why, "localhost is no IP address"));
  gloo_config elsewhere = quick(0);
  elsewhere.address = "192.0.2.1";
  EXPECT_TRUE(says(join(std::move(elsewhere), store).why, "cannot listen at 192.0.2.1:0"));
}

/// Rank 1 comes to rank 0 through somebody.
struct group_with_proxy {
  explicit group_with_proxy(bool protected_link = false, std::chrono::milliseconds timeout = 30s) {
    proxy.stand_between(of_one);
    auto config = [=](uint32_t r) {
      gloo_config c = gloo_rank(r, 2, protected_link);
      c.timeout = timeout;
      return c;
    };
    auto both = join_both(config(0), store, config(1), of_one);
    for (int r = 0; r < 2; ++r) {
      if (!both[r].end) throw std::runtime_error(both[r].why);
      ends[r] = std::move(both[r].end);
    }
  }
  memory_rank_store store;
  changing_store of_one{store};
  link_proxy proxy;
  std::unique_ptr<gloo_communicator> ends[2];
};

TEST(GlooGroup, RefusesAHelloOfAnotherTime) {
  group_with_proxy earlier;
  blob said = earlier.proxy.seen();
  memory_rank_store store;
  joined zero;
  std::thread first([&] { zero = join(quick(0), store); });
  owned_fd replays = connect_to_port(port_of_rank_0(store));
  // Rank 1's hello comes first, whatever came after it; its proof is tried at every place.
  ::send(replays.get(), said.data(), hello_bytes, MSG_NOSIGNAL);
  std::this_thread::sleep_for(20ms);
  ::send(replays.get(), said.data() + 2 * hello_bytes + proof_bytes, proof_bytes, MSG_NOSIGNAL);
  ASSERT_TRUE(store.set("7/tensor 0/0/1", blob(link_address::bytes, std::byte{2})));
  first.join();
  EXPECT_TRUE(says(zero.why, "rank 1, whose proof is wrong: another secret, or a hello of another"))
      << zero.why;
}

/// Rank 1 broadcasts twice; what rank 0 says of it, and then of every call.
std::string what_rank_0_says(group_with_proxy& g, size_t floats = 2) {
  std::string why;
  on_all(2, [&](uint32_t r) {
    std::vector<float> x(floats, float(r)), y(floats, float(r));
    auto first = g.ends[r]->broadcast(std::as_writable_bytes(std::span(x)), 1);
    auto second = first ? g.ends[r]->broadcast(std::as_writable_bytes(std::span(y)), 1) : first;
    if (r != 0) return;
    EXPECT_FALSE(second);
    if (second) return;
    why = second.why().text;
    auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(g.ends[0]->barrier().why().text, why);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 20s);
  });
  EXPECT_FALSE(g.ends[1]->barrier());
  return why;
}

constexpr const char* changed =
    "communicator: a frame of rank 1 was changed on its way; see who is on the link";
constexpr const char* moved =
    "communicator: a frame of rank 1 was lost, repeated or moved; see who is on the link";

/// Does something once, to all frames that rank 1 has sent on its first connection, when these are
/// as many bytes.
auto once_at(size_t bytes, const std::function<void(blob&)>& what) {
  return [bytes, what, done = false](link_proxy::listener& l, blob& said) mutable {
    if (l.connection != 0 || !l.from_caller || done) return;
    if (l.all.size() <= l.frames_from()) return;
    if (l.all.size() < l.frames_from() + bytes) return said.clear();
    done = true;
    what(said);
  };
}

TEST(GlooLink, RefusesAFrameWithAFlippedBit) {
  const size_t frame = seal_bytes + 8;
  // Bytes of the slot, of what is sealed, and of the tag.
  for (size_t at : {size_t{8}, size_t{15}, size_t{32}, size_t{39}, size_t{40}, frame - 1}) {
    group_with_proxy g;
    g.proxy.change = once_at(frame, [at](blob& said) { said[at] ^= std::byte{4}; });
    EXPECT_EQ(what_rank_0_says(g), changed) << at;
  }
}

TEST(GlooLink, RefusesAFlippedBitInALargeFrame) {
  for (size_t at : {100, 70'000, 200'000}) {
    size_t passed = 0;  // the proxy's threads count until they end
    group_with_proxy g;
    g.proxy.change = [at, &passed](link_proxy::listener& l, blob& said) {
      if (l.connection != 0 || !l.from_caller || l.all.size() <= l.frames_from()) return;
      if (passed <= at && at < passed + said.size()) said[at - passed] ^= std::byte{1};
      passed += said.size();
    };
    EXPECT_EQ(what_rank_0_says(g, 100'000), changed) << at;
  }
}

TEST(GlooLink, RefusesARepeatedFrame) {
  group_with_proxy g;
  g.proxy.change = once_at(seal_bytes + 8, [](blob& said) {
    blob twice(said.begin(), said.begin() + seal_bytes + 8);
    said.insert(said.begin(), twice.begin(), twice.end());
  });
  EXPECT_EQ(what_rank_0_says(g), moved);
}

TEST(GlooLink, RefusesFramesInAnotherOrder) {
  group_with_proxy g;
  g.proxy.change = once_at(2 * (seal_bytes + 8), [](blob& said) {
    std::rotate(said.begin(), said.begin() + seal_bytes + 8, said.end());
  });
  EXPECT_EQ(what_rank_0_says(g), moved);
}

TEST(GlooLink, RefusesToGoOnWithoutALostFrame) {
  group_with_proxy g;
  g.proxy.change = once_at(2 * (seal_bytes + 8), [](blob& said) {
    said.erase(said.begin(), said.begin() + seal_bytes + 8);
  });
  EXPECT_EQ(what_rank_0_says(g), moved);
}

/// Rank 0's own frame, of the same number and call, comes back to it in rank 1's place.
TEST(GlooLink, RefusesAFrameOfTheOtherDirection) {
  group_with_proxy g;
  blob own;
  g.proxy.change = [&own](link_proxy::listener& l, blob& said) {
    if (l.connection != 0 || l.all.size() <= l.frames_from()) return;
    (l.from_caller ? said : own) = l.from_caller ? own : said;
  };
  on_all(2, [&](uint32_t r) {
    if (r == 1) std::this_thread::sleep_for(50ms);
    auto done = g.ends[r]->barrier();
    if (r == 0) {
      ASSERT_FALSE(done);
      EXPECT_EQ(done.why().text, changed);
    }
  });
  EXPECT_EQ(own.size(), seal_bytes);
}

TEST(GlooLink, SaysThatALinkWasCut) {
  for (bool waits : {false, true}) {
    group_with_proxy g;
    on_all(2, [&](uint32_t r) { EXPECT_TRUE(g.ends[r]->barrier()); });
    std::thread cuts([&] {
      if (waits) std::this_thread::sleep_for(30ms);
      g.proxy.cut = true;
    });
    if (!waits) cuts.join(), std::this_thread::sleep_for(50ms);
    std::vector<float> x(4);
    auto done = g.ends[0]->recv(std::as_writable_bytes(std::span(x)), 1);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.why().text,
              "communicator: rank 1 is gone, its connection was closed; see why it ended");
    EXPECT_FALSE(g.ends[1]->barrier());
    if (waits) cuts.join();
  }
}

/// As a pulled cable is: nothing comes, and nothing says so.
TEST(GlooLink, EndsBothSidesOfASilentLink) {
  group_with_proxy g(false, 500ms);
  g.proxy.change = [](link_proxy::listener&, blob& said) { said.clear(); };
  std::string whys[2];
  on_all(2, [&](uint32_t r) {
    std::vector<float> x(100'000);
    auto done = g.ends[r]->all_reduce(x);
    ASSERT_FALSE(done);
    whys[r] = done.why().text;
  });
  // Once one has given up, the other may see its end of the connection closed.
  EXPECT_TRUE(says(whys[0], "rank 1 did not answer within 500 ms") ||
              says(whys[1], "rank 0 did not answer within 500 ms"))
      << whys[0] << "\n"
      << whys[1];
}

TEST(GlooLink, NamesARankThatIsLateInEveryCall) {
  std::vector<float> x(4);
  auto bytes = std::as_writable_bytes(std::span(x));
  std::vector<communicator::extent> parts{{0, 2}, {2, 2}};
  using call = std::function<result<void>(communicator&)>;
  for (const call& c :
       {call([&](communicator& c) { return c.all_reduce(x); }),
        call([&](communicator& c) { return c.all_gather(x, parts); }),
        call([&](communicator& c) { return c.reduce_scatter(x, parts); }),
        call([&](communicator& c) { return c.broadcast(bytes, 1); }),
        call([&](communicator& c) { return c.barrier(); }),
        call([&](communicator& c) { return c.recv(bytes, 1); }),
        call([&](communicator& c) { return c.send(bytes, 1) ? c.send(bytes, 1) : result<void>(); }),
        call([&](communicator& c) { return c.send(bytes, 1) ? c.flush() : result<void>(); })}) {
    auto ends = gloo_group_of(2, [](uint32_t r) {
      gloo_config config = gloo_rank(r, 2);
      config.timeout = 60ms;
      return config;
    });
    auto begin = std::chrono::steady_clock::now();
    auto done = c(*ends[0]);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.why().text,
              "communicator: rank 1 did not answer within 60 ms; see whether it runs and is "
              "reached");
    EXPECT_GE(std::chrono::steady_clock::now() - begin, 60ms);
  }
}

TEST(GlooLink, TellsALateRankThatItWasLate) {
  auto ends = gloo_group_of(2, [](uint32_t r) {
    gloo_config config = gloo_rank(r, 2);
    config.timeout = 60ms;
    return config;
  });
  ASSERT_FALSE(ends[0]->barrier());
  std::vector<float> x(4);
  auto told = ends[1]->recv(std::as_writable_bytes(std::span(x)), 0);
  ASSERT_FALSE(told);
  EXPECT_TRUE(says(told.why().text, "rank 1 did not answer within 60 ms") ||
              says(told.why().text, "rank 0 is gone"))
      << told.why().text;
}

TEST(GlooLink, SaysWhoAborted) {
  auto ends = make_gloo_group(3);
  std::thread aborts([&] {
    std::this_thread::sleep_for(10ms);
    ends[2]->abort();
  });
  auto done = ends[0]->barrier();
  aborts.join();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.why().text, "communicator: rank 2 says: rank 2 aborted the group");
  EXPECT_EQ(ends[2]->barrier().why().text, "communicator: rank 2 aborted the group");
}

TEST(GlooLink, WaitsForEverWhereItIsToldTo) {
  auto ends = gloo_group_of(2, [](uint32_t r) {
    gloo_config c = gloo_rank(r, 2);
    c.timeout = 0ms;
    return c;
  });
  std::thread later([&] {
    std::this_thread::sleep_for(100ms);
    EXPECT_TRUE(ends[1]->barrier());
  });
  EXPECT_TRUE(ends[0]->barrier());
  later.join();
}

/// A rank that leaves when all is said does no harm to others that still speak.
TEST(GlooLink, LetsARankGoWhenItIsDone) {
  auto ends = make_gloo_group(3);
  on_all(3, [&](uint32_t r) {
    ASSERT_TRUE(ends[r]->barrier());
    if (r == 2) ends[2].reset();
  });
  std::vector<float> x(100, 1);
  std::thread other([&] { EXPECT_TRUE(ends[1]->recv(std::as_writable_bytes(std::span(x)), 0)); });
  EXPECT_TRUE(ends[0]->send(std::as_bytes(std::span(x)), 1));
  other.join();
  EXPECT_TRUE(ends[1]->send(std::as_bytes(std::span(x)), 0));
  EXPECT_TRUE(ends[0]->recv(std::as_writable_bytes(std::span(x)), 1));
}

}  // namespace
}  // namespace lethe::testing

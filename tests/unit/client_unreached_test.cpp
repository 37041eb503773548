// A client that starts while its relay or its gateway is away, or hangs.
#include "runtime/client/local_proxy.hpp"
#include "runtime/http/listen.hpp"
#include "tests/unit/client_cluster.hpp"
#include "tests/unit/http_peers.hpp"

namespace lethe {
namespace {

using namespace test;

struct ClientUnreached : ::testing::Test {
  fake_cluster cluster;
  client_home home{cluster};
  std::atomic<uint64_t> steady{1000};
  std::mutex lock;
  std::vector<call_end> looks;
  std::unique_ptr<private_client> client;

  call_end start(bool starts_unreached = true) {
    client = nullptr;
    auto made = private_client::start(home.file(), {.now_s = [this] { return cluster.now_s; },
                                                    .steady_s = [this] { return steady.load(); },
                                                    .redraw_wait_ms = 0,
                                                    .starts_unreached = starts_unreached,
                                                    .on_look =
                                                        [this](const call_end& how) {
                                                          std::lock_guard guard(lock);
                                                          looks.push_back(how);
                                                        }});
    if (made) client = std::move(*made);
    return made.end;
  }
  /// The timer's next, as it was told.
  call_end next_look() {
    steady += 100;
    for (int i = 0; i < 3000; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      std::lock_guard guard(lock);
      if (!looks.empty()) return std::exchange(looks, {}).front();
    }
    return fault(call_fault::none, "nothing was told");
  }
};

TEST_F(ClientUnreached, IsAnErrorThatSaysWhoDoesNotReachWhom) {
  cluster.unreached = true;
  auto end = start(false);
  EXPECT_EQ(end.fault, call_fault::busy);
  EXPECT_EQ(end.why.text, "the relay answers 502: it does not reach the gateway");
}

TEST_F(ClientUnreached, AProxyStartsAndServesOnceItIsReached) {
  ASSERT_TRUE(start());
  ASSERT_TRUE(client->buy());
  EXPECT_TRUE(client->first_look());
  cluster.unreached = true;
  ASSERT_TRUE(start());
  EXPECT_EQ(client->first_look().why.text, "the relay answers 502: it does not reach the gateway");
  auto proxy = *local_proxy::start(*client, "127.0.0.1:0");
  auto http = *http_client::start({}, {});
  auto ask = [&] {
    auto to = *read_url("http://" + proxy->bound()[0].address);
    auto got = ask_whole(
        *http, {.to = to.first, .method = "POST", .path = "/v1/completions", .body = "{}"});
    EXPECT_TRUE(got) << got.why().text;
    return got ? *std::move(got) : http_whole{};
  };
  auto got = ask();
  EXPECT_EQ(got.head.status, 503);
  EXPECT_NE(got.body.find("\"code\":\"cluster_busy\""), got.body.npos) << got.body;
  EXPECT_NE(got.body.find("does not reach the gateway"), got.body.npos) << got.body;
  EXPECT_EQ(next_look().fault, call_fault::busy);
  cluster.unreached = false;
  EXPECT_TRUE(next_look());
  EXPECT_EQ(ask().head.status, 200);
}

TEST_F(ClientUnreached, WhatIsReachedAndNotToBeBelievedIsAnErrorAtAnyTime) {
  cluster.unreached = true;
  ASSERT_TRUE(start());
  cluster.witnesses = 0;
  cluster.unreached = false;
  EXPECT_EQ(next_look().fault, call_fault::trust);
  EXPECT_EQ(start().fault, call_fault::trust);
  EXPECT_FALSE(client);
}

/// Which of them hangs, a client can't know: it says how long nothing came.
TEST_F(ClientUnreached, KeysAndPagesAreWaitedForSoLongAndNoLonger) {
  auto silent = *listen_socket::open("127.0.0.1:0");
  auto relay = *server_at::from_url("http://" + silent.bound());
  auto http = *http_client::start({}, {});
  oblivious_channel channel(*http, {relay}, "gateway.test", 200);
  auto keys = channel.fetch_keys();
  EXPECT_EQ(keys.end.fault, call_fault::relay);
  EXPECT_EQ(keys.end.why.text, "relay: nothing came for 0.2 s; it or what it passes to may hang");
  oblivious_channel there(*http, home.trust().relays, "gateway.test");
  auto key = read_ohttp_keys(*there.fetch_keys())->front();
  auto page = channel.ask_whole(key, {.path = "/checkpoint"}, 10'000);
  EXPECT_EQ(page.end.fault, call_fault::relay);
  EXPECT_NE(page.end.why.text.find("nothing came for 0.2 s"), std::string::npos);
}

}  // namespace
}  // namespace lethe

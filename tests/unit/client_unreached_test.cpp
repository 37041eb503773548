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
  uint32_t look_wait_ms = 15'000;
  std::unique_ptr<private_client> client;

  std::unique_ptr<local_proxy> proxy;
  std::unique_ptr<http_client> http = *http_client::start({}, {});

  http_whole ask() {
    auto to = *read_url("http://" + proxy->bound()[0].address);
    auto got = ask_whole(
        *http, {.to = to.first, .method = "POST", .path = "/v1/completions", .body = "{}"});
    EXPECT_TRUE(got) << got.why().text;
    return got ? *std::move(got) : http_whole{};
  }
  call_end start(bool starts_unreached = true) {
    client = nullptr;
    auto made = private_client::start(home.file(), {.now_s = [this] { return cluster.now_s; },
                                                    .steady_s = [this] { return steady.load(); },
                                                    .redraw_wait_ms = 0,
                                                    .look_wait_ms = look_wait_ms,
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
  proxy = *local_proxy::start(*client, "127.0.0.1:0");
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

/// The roster is over, so that every call looks for the next one first.
TEST_F(ClientUnreached, OneCallWaitsForWhoHangsAndTheOthersAreToldAtOnce) {
  look_wait_ms = 200;
  ASSERT_TRUE(start());
  ASSERT_TRUE(client->buy());
  proxy = *local_proxy::start(*client, "127.0.0.1:0", 8);
  cluster.now_s += 2000;
  cluster.hangs = true;
  std::vector<std::thread> all;
  std::atomic<int> waited{0}, told{0};
  for (int i = 0; i < 8; ++i)
    all.emplace_back([&] {
      auto got = ask();
      waited += got.head.status == 502;
      told += got.head.status == 503;
    });
  for (auto& t : all) t.join();
  EXPECT_EQ(waited, 1);
  EXPECT_EQ(told, 7);
  EXPECT_EQ(cluster.hung, 1u) << "one asked";
  auto got = ask();
  EXPECT_EQ(got.head.status, 503);
  EXPECT_EQ(got.head.field("retry-after"), std::to_string(hang_guard::pause_s));
  EXPECT_NE(got.body.find("\"code\":\"cluster_busy\""), got.body.npos) << got.body;
  EXPECT_NE(got.body.find("nothing came for 0.2 s"), got.body.npos) << got.body;
  EXPECT_NE(got.body.find("asked again in 10 s"), got.body.npos) << got.body;
  EXPECT_EQ(cluster.hung, 1u);
  steady += hang_guard::pause_s;
  EXPECT_EQ(ask().head.status, 502) << "one tries";
  EXPECT_EQ(ask().head.status, 503);
  EXPECT_EQ(cluster.hung, 2u);
  cluster.hangs = false;
  cluster.set_roster(3);
  EXPECT_EQ(ask().head.status, 503);
  steady += hang_guard::pause_s;
  EXPECT_EQ(ask().head.status, 200);
  EXPECT_EQ(ask().head.status, 200);
}

TEST(ClientHangGuard, LetsOneAskAfterAPauseAndAllOnceItIsAnswered) {
  hang_guard g;
  call_end hung = fault(call_fault::relay, "nothing came");
  hung.hung = true;
  EXPECT_FALSE(g.refusal(100));
  g.begins(100);
  EXPECT_FALSE(g.refusal(100)) << "nothing is known to hang: wait for the one that asks";
  g.ended(fault(call_fault::relay, "no connection"), 100);
  EXPECT_FALSE(g.refusal(100)) << "that was told at once";
  g.begins(100);
  g.ended(hung, 100);
  EXPECT_EQ(g.refusal(100)->retry_after_s, hang_guard::pause_s);
  EXPECT_EQ(g.refusal(101)->retry_after_s, hang_guard::pause_s - 1);
  EXPECT_EQ(g.refusal(99 + hang_guard::pause_s)->retry_after_s, 1u);
  EXPECT_FALSE(g.refusal(100 + hang_guard::pause_s));
  g.begins(100 + hang_guard::pause_s);
  EXPECT_TRUE(g.refusal(100 + hang_guard::pause_s)) << "one tries already";
  g.ended(hung, 200);
  EXPECT_TRUE(g.refusal(200));
  g.begins(300);
  g.ended({}, 300);
  EXPECT_FALSE(g.refusal(300));
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

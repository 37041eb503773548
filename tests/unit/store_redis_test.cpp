#include <map>

#include "runtime/store/store_limits.hpp"
#include "store_redis_server.hpp"

namespace lethe {
namespace {

using namespace test;
using what = change_state::what;

std::unique_ptr<spend_store> open_redis(const std::string& url, std::string_view gateway = "one",
                                        spend_bounds bounds = {}) {
  auto ledger = open_redis_spends(url, gateway);
  if (!ledger) ADD_FAILURE() << ledger.why().text;
  return ledger ? std::make_unique<spend_store>(*std::move(ledger), bounds) : nullptr;
}

void expect_refused(const std::string& url, std::string_view why) {
  auto ledger = open_redis_spends(url, "one");
  ASSERT_FALSE(ledger) << "not refused for " << why;
  EXPECT_NE(ledger.why().text.find(why), std::string::npos) << ledger.why().text;
}

class StoreRedis : public ::testing::Test {
 protected:
  StoreRedis() { std::signal(SIGPIPE, SIG_IGN); }
};

TEST_F(StoreRedis, TakesATokenOnceForAllGateways) {
  redis_server server;
  auto one = open_redis(server.url(), "one"), two = open_redis(server.url(), "two");
  EXPECT_TRUE(is_fresh(spend_now(*one, token_of(1), digest_of(1))));
  EXPECT_TRUE(is_spent_before(spend_now(*one, token_of(1), digest_of(1))));
  EXPECT_TRUE(is_spent_before(spend_now(*two, token_of(1), digest_of(1))));
  EXPECT_TRUE(is_fresh(spend_now(*two, token_of(1, 9), digest_of(1))));
  EXPECT_EQ(*count_of(*two, 0), 1u);
}

TEST_F(StoreRedis, OfManyThreadsAndGatewaysOneIsFirst) {
  constexpr uint32_t tokens = 100, gateways = 4;
  redis_server server;
  std::vector<std::atomic<uint32_t>> fresh(tokens), before(tokens);
  std::vector<std::thread> all;
  for (uint32_t g = 0; g < gateways; ++g)
    all.emplace_back([&, g] {
      auto store = open_redis(server.url(), std::to_string(g));
      for (uint32_t n = 0; n < tokens; ++n) {
        ASSERT_TRUE(store->spend(token_of(n), digest_of(g), [&, n](result<spend_answer> a) {
          ++(is_fresh(a) ? fresh : before)[n];
        }));
      }
    });
  for (std::thread& t : all) t.join();
  for (uint32_t n = 0; n < tokens; ++n) {
    EXPECT_EQ(fresh[n], 1u);
    EXPECT_EQ(before[n], gateways - 1);
  }
}

TEST_F(StoreRedis, ChangeIsDueUnlessTheAnswerWasDelivered) {
  redis_server server;
  auto store = open_redis(server.url());
  EXPECT_TRUE(is(change_of(*store, token_of(0)), what::none));
  for (uint32_t n = 1; n <= 4; ++n) {
    ASSERT_TRUE(is_fresh(spend_now(*store, token_of(n), digest_of(n))));
    EXPECT_TRUE(is(change_of(*store, token_of(n)), what::open));
    ASSERT_TRUE(store->settle(token_of(n), outcome(n)));
    ASSERT_TRUE(store->settle(token_of(n), outcome(5 - n)));  // the first one stays
    if (outcome(n) == outcome::delivered)
      EXPECT_TRUE(is(change_of(*store, token_of(n)), what::delivered));
    else
      EXPECT_TRUE(is_due(change_of(*store, token_of(n)), digest_of(n)));
  }
  EXPECT_TRUE(drop_now(*store, 0));
  EXPECT_EQ(*count_of(*store, 0), 0u);
  EXPECT_TRUE(is(change_of(*store, token_of(1)), what::delivered));
}

/// Another gateway may hear of the issuer's directory a minute later.
TEST_F(StoreRedis, TokensOfARetiredKeyAreSpentAtNoGateway) {
  redis_server server;
  auto one = open_redis(server.url(), "one"), two = open_redis(server.url(), "two");
  ASSERT_TRUE(is_fresh(spend_now(*one, token_of(1), digest_of(1))));
  ASSERT_TRUE(drop_now(*one, 0));
  EXPECT_TRUE(is_spent_before(spend_now(*two, token_of(1), digest_of(1))));
  EXPECT_TRUE(is_spent_before(spend_now(*two, token_of(2), digest_of(2))));
  EXPECT_TRUE(is(change_of(*two, token_of(2)), what::delivered));
  EXPECT_TRUE(is_fresh(spend_now(*two, token_of(2, 9), digest_of(2)))) << "of another key";
  EXPECT_EQ(*count_of(*two, 0), 0u);
}

TEST_F(StoreRedis, WhatAGatewayLeftOpenIsDueWhenItIsBack) {
  redis_server server;
  auto two = open_redis(server.url(), "two");
  ASSERT_TRUE(is_fresh(spend_now(*two, token_of(0), digest_of(0))));
  constexpr uint32_t many = limits::drop_slice_rows + 1;
  {
    auto ledger = *open_redis_spends(server.url(), "one");
    std::vector<spend_entry> spends;
    for (uint32_t n = 1; n <= many; ++n) spends.push_back({token_of(n), digest_of(n)});
    ASSERT_TRUE(ledger->commit(spends, {}));
  }
  auto ledger = *open_redis_spends(server.url(), "one");
  for (uint32_t n = 1; n <= many; ++n)
    ASSERT_TRUE(is_due(ledger->state(token_of(n)), digest_of(n)));
  EXPECT_TRUE(is(change_of(*two, token_of(0)), what::open));  // another gateway's
}

TEST_F(StoreRedis, RefusesAServerThatCouldForget) {
  const std::pair<std::vector<std::string>, const char*> servers[] = {
      {{"--appendonly", "no"}, "appendonly is no"},
      {{"--appendfsync", "everysec"}, "appendfsync is everysec"},
      {{"--appendfsync", "no"}, "appendfsync is no"},
      {{"--no-appendfsync-on-rewrite", "yes"}, "no-appendfsync-on-rewrite is yes"},
      {{"--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"}, "maxmemory-policy is"},
      {{"--rename-command", "CONFIG", ""}, "refused, ERR"},
  };
  for (const auto& [settings, why] : servers) {
    redis_server server(settings);
    expect_refused(server.url(), why);
  }
}

TEST_F(StoreRedis, RefusesAReplicaAndAMasterWithReplicas) {
  redis_server master;
  ASSERT_EQ(master.tell({"CONFIG", "SET", "repl-ping-replica-period", "1"}), "OK");
  redis_server replica({"--replicaof", "127.0.0.1", "1"});  // nobody answers there
  expect_refused(replica.url(), "a replica; name the master");
  // A replica of a server without a port cannot be: the connection that asks to be one will do.
  std::unique_ptr<redisContext, redis_freer> c(redisConnectUnix(master.socket().c_str()));
  redisAppendCommand(c.get(), "REPLCONF listening-port 1");
  void* reply = nullptr;
  ASSERT_EQ(redisGetReply(c.get(), &reply), REDIS_OK);
  freeReplyObject(reply);
  redisAppendCommand(c.get(), "SYNC");
  int written = 0;
  while (!written) ASSERT_EQ(redisBufferWrite(c.get(), &written), REDIS_OK);
  for (int left = 3000; left > 0; --left) {
    if (master.tell({"INFO", "replication"}).find("connected_slaves:1") != std::string::npos) break;
    ::usleep(10'000);
  }
  expect_refused(master.url(), "has replicas");
}

TEST_F(StoreRedis, WantsThePassword) {
  redis_server server({"--requirepass", "sesame"});
  expect_refused(server.url(), "refused, NOAUTH");
  auto place = *redis_place::parse(server.url());
  place.password = secret_bytes(as_bytes("sesame"));
  EXPECT_TRUE(redis_link::connect(place));
  place.password = secret_bytes(as_bytes("simsim"));
  auto link = redis_link::connect(place);
  ASSERT_FALSE(link);
  EXPECT_EQ(link.why().text.find("simsim"), std::string::npos);
}

TEST_F(StoreRedis, ReadsItsUrl) {
  auto place = redis_place::parse("redis://:a:b@c@host.example:7000/3");
  ASSERT_TRUE(place) << place.why().text;
  EXPECT_EQ(as_text(place->password.view()), "a:b@c");
  EXPECT_EQ(place->name(), "redis://host.example:7000/3");
  EXPECT_EQ(redis_place::parse("redis://h")->name(), "redis://h:6379/0");
  EXPECT_EQ(redis_place::parse("redis://[::1]:5")->host, "::1");
  EXPECT_EQ(redis_place::parse("redis://[::1]")->host, "::1");
  EXPECT_EQ(redis_place::parse("unix:/run/x:1@/redis")->socket, "/run/x:1@/redis");
  const std::string longest(limits::redis_password_max, 'p');
  EXPECT_TRUE(redis_place::parse("redis://:" + longest + "@h"));
  for (const std::string& bad :
       {"redis://:" + longest + "p@h", std::string("redis://:@h"), std::string("redis://ann:p@h"),
        std::string("redis://"), std::string("redis://:1"), std::string("redis://h:0"),
        std::string("redis://h:65536"), std::string("redis://h:x"), std::string("redis://h/x"),
        std::string("redis://h/"), std::string("redis://h/-1"), std::string("rediss://h"),
        std::string("unix:run"), std::string("unix:"), std::string()}) {
    auto place_of_it = redis_place::parse(bad);
    ASSERT_FALSE(place_of_it) << bad;
    EXPECT_EQ(place_of_it.why().text.find("pppp"), std::string::npos);
  }
}

TEST_F(StoreRedis, AnErrorTellsNothingOfAToken) {
  redis_server server;
  auto ledger = *open_redis_spends(server.url(), "one");
  spend_entry one[] = {{token_of(1), digest_of(1)}};
  ASSERT_EQ(server.tell({"CONFIG", "SET", "min-replicas-to-write", "1"}), "OK");
  auto failed = ledger->commit(one, {});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.why().text, server.url() + ": refused, NOREPLICAS");
}

TEST_F(StoreRedis, ASpendWhoseAnswerWasLostIsStillFresh) {
  redis_server server;
  breaking_link between(server);
  auto ledger = *open_redis_spends(between.url(), "one");
  for (uint32_t breaks = 1; breaks <= 2; ++breaks) {
    between.break_next(breaks);
    spend_entry two[] = {{token_of(breaks), digest_of(1)}, {token_of(breaks), digest_of(2)}};
    auto done = ledger->commit(two, {});
    ASSERT_TRUE(done) << done.why().text;
    EXPECT_TRUE(between.has_broken());
    EXPECT_TRUE(two[0].fresh);
    EXPECT_FALSE(two[1].fresh);  // the same token, but another spend
  }
}

TEST_F(StoreRedis, ASpendThatFailedGivesBackItsOwnTokenOnly) {
  redis_server server;
  breaking_link between(server);
  auto ledger = *open_redis_spends(between.url(), "one");
  spend_entry mine[] = {{token_of(1), digest_of(1)}};
  ASSERT_TRUE(ledger->commit(mine, {}));
  between.break_next(100);  // more often than it tries
  spend_entry more[] = {{token_of(1), digest_of(9)}, {token_of(2), digest_of(2)}};
  EXPECT_FALSE(ledger->commit(more, {}));
  EXPECT_FALSE(more[1].fresh);
  between.break_next(0);
  ASSERT_TRUE(ledger->commit({}, {}));
  EXPECT_TRUE(is(ledger->state(token_of(1)), what::open));
  EXPECT_TRUE(is_due(ledger->state(token_of(2)), digest_of(2)));
}

/// It has the spend in its ears, and hears it when it goes on.
TEST_F(StoreRedis, AServerThatHangsIsWaitedForOnceAndKeepsNothingOfAFailedSpend) {
  redis_server server;
  auto ledger = *open_redis_spends(server.url(), "one");
  spend_entry before[] = {{token_of(1), digest_of(1)}};
  ASSERT_TRUE(ledger->commit(before, {}));
  auto connections = [&server] {
    const std::string stats = server.tell({"INFO", "stats"});
    const std::string name = "total_connections_received:";
    return std::stoul(stats.substr(stats.find(name) + name.size()));
  };
  const auto connected = connections();
  server.stop();
  spend_entry during[] = {{token_of(2), digest_of(2)}};
  EXPECT_FALSE(ledger->commit(during, {}));
  EXPECT_FALSE(during[0].fresh);
  server.go_on();
  EXPECT_EQ(connections(), connected + 1) << "more than its own: it was tried again";
  spend_entry after[] = {{token_of(1), digest_of(3)}, {token_of(3), digest_of(3)}};
  ASSERT_TRUE(ledger->commit(after, {}));
  EXPECT_FALSE(after[0].fresh);
  EXPECT_TRUE(after[1].fresh);
  EXPECT_TRUE(is_due(ledger->state(token_of(2)), digest_of(2)));
  EXPECT_TRUE(is(ledger->state(token_of(1)), what::open));
}

TEST_F(StoreRedis, RefusesAServerThatCameBackEmpty) {
  redis_server server;
  auto ledger = *open_redis_spends(server.url(), "one");
  spend_entry one[] = {{token_of(1), digest_of(1)}};
  ASSERT_TRUE(ledger->commit(one, {}));
  server.kill();
  server.start();
  ASSERT_TRUE(ledger->commit(one, {}));
  EXPECT_FALSE(one[0].fresh);
  server.kill();
  server.forget();
  server.start();
  auto done = ledger->commit(one, {});
  ASSERT_FALSE(done);
  EXPECT_NE(done.why().text.find("not the store that it was"), std::string::npos);
}

TEST_F(StoreRedis, NoSpendThatWasToldFreshIsLostWhenRedisIsKilled) {
  redis_server server;
  uint32_t first = 0;
  for (uint32_t run = 0; run < 5; ++run) {
    std::mutex mutex;
    std::map<uint32_t, bool> told;  // whether fresh
    std::atomic<uint32_t> fresh = 0;
    std::atomic<bool> stop = false;
    auto store = open_redis(server.url(), "one", {.waiting_max = 1 + run * 8});
    std::thread spender([&] {
      for (uint32_t n = first; !stop;) {
        auto then = [&, n](const result<spend_answer>& a) {
          std::lock_guard lock(mutex);
          told[n] = is_fresh(a);
          if (a && !is_fresh(a)) ADD_FAILURE() << "a token that nobody spent";
          fresh += is_fresh(a);
        };
        if (store->spend(token_of(n), digest_of(n), then))
          ++n;
        else
          std::this_thread::yield();
      }
    });
    while (fresh < 50 + 40 * run) std::this_thread::yield();
    server.kill();
    stop = true;
    spender.join();
    server.start();
    store.reset();
    first += uint32_t(told.size());
    auto again = *open_redis_spends(server.url(), "one");
    for (auto [n, was_fresh] : told) {
      auto state = again->state(token_of(n));
      if (was_fresh)
        EXPECT_TRUE(is_due(state, digest_of(n)));
      else
        EXPECT_FALSE(is(state, what::open));
    }
  }
}

}  // namespace
}  // namespace lethe

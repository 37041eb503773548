// A wallet whose process ends at each of its writes, by a kill or by a power loss, and one that
// many threads use.
#include <future>
#include <thread>

#include "tests/unit/client_unsynced_disk.hpp"
#include "tests/unit/client_wallet_samples.hpp"

namespace lethe {
namespace {

using namespace test;
using ending = unsynced_disk::ending;

const bytes key = random_bytes(32, 5);

/// A disk, and what was seen of the wallet on it from outside.
struct world {
  explicit world(uint32_t seed) : random(seed) {}

  /// Nobody must be shown a token with two different requests for change: whoever joins them knows
  /// that they are one client's.
  void show(const token_offer& o) {
    auto known = shown.try_emplace(o.token.nonce, o.change).first;
    shown_twice += known->second != o.change;
  }
  /// One process, until it ends or has done so much.
  void live(uint32_t steps_max) {
    auto opened = wallet::open(disk.handle(), key, "wallet");
    if (!opened) {
      if (!disk.ended()) refused = opened.why().text;
      return;
    }
    wallet& w = **opened;
    for (uint32_t i = 0; i < steps_max && !disk.ended(); ++i) step(w);
  }
  void step(wallet& w) {
    switch (random() % 5) {
      case 0:
        return buy(w);
      case 1:
        return claim(w);
      default:
        return call(w);
    }
  }
  void buy(wallet& w) {
    auto tokens = many(3, bought += 3);
    if (!w.add(tokens)) return;
    for (const auto& t : tokens) owned.insert(t.nonce);
  }
  void call(wallet& w) {
    auto t = w.take(key_of_test().published(), digest);
    if (!t || !*t) return;
    const hash32& nonce = (*t)->token.nonce;
    const auto fate = random() % 4;
    if (fate == 0) return (void)bool(w.put_back(nonce));
    show(**t);
    if (fate == 1) return w.leave_open(nonce);
    if (w.forget(nonce)) owned.erase(nonce);
  }
  void claim(wallet& w) {
    auto open = w.claimable();
    if (open.empty()) return;
    const hash32 nonce = open[random() % open.size()];
    auto again = w.offer_again(nonce);
    ASSERT_TRUE(again);
    show(*again);
    owned.erase(nonce);
    if (random() % 4 == 0) return (void)bool(w.forget(nonce));
    auto signature = key_of_test().sign(again->change.blinded);
    (void)bool(w.take_change(nonce, *signature));
  }
  /// In the end, each token is shown once more at most, as before; and none is lost that was
  /// neither answered for nor changed.
  void count() {
    auto opened = wallet::open(disk.handle(), key, "wallet");
    if (!opened) {
      refused = opened.why().text;
      return;
    }
    wallet& w = **opened;
    std::set<hash32> left;
    for (const auto& nonce : w.claimable()) {
      left.insert(nonce);
      show(*w.offer_again(nonce));
    }
    while (true) {
      auto t = w.take(key_of_test().published(), digest);
      ASSERT_TRUE(t) << t.why().text;
      if (!*t) break;
      left.insert((*t)->token.nonce);
      show(**t);
    }
    for (const auto& nonce : owned) lost += !left.contains(nonce);
  }

  unsynced_disk disk;
  std::mt19937 random;
  std::map<hash32, token_request> shown;
  std::set<hash32> owned;
  uint32_t bought = 0;
  uint32_t shown_twice = 0, lost = 0;
  std::string refused;
};

/// Some processes, each of which ends after so many writes or syncs.
void live_and_die(world& w, uint32_t first_steps) {
  for (uint32_t life = 0; life < 4; ++life) {
    const auto how = w.random() % 2 ? ending::kill : ending::power_loss;
    const uint32_t steps = life == 0 ? first_steps : 1 + w.random() % 24;
    w.disk.end_after(steps, how, w.random());
    w.live(12);
    w.disk.end_after(0, how, w.random());
    w.disk.restart();
  }
  w.count();
}

TEST(ClientWalletEndings, ShowNoTokenTwiceAndLoseNoneWhereverItEnds) {
  uint32_t shown = 0;
  for (uint32_t seed = 0; seed < 240; ++seed) {
    world w(seed);
    live_and_die(w, 1 + seed % 40);
    EXPECT_EQ(w.shown_twice, 0u) << seed;
    EXPECT_EQ(w.lost, 0u) << seed;
    EXPECT_EQ(w.refused, "") << seed;
    shown += uint32_t(w.shown.size());
  }
  EXPECT_GT(shown, 500u);
}

TEST(ClientWalletEndings, WouldShowTokensTwiceOnADiskThatDoesNotSync) {
  uint32_t twice = 0;
  for (uint32_t seed = 0; seed < 400 && twice == 0; ++seed) {
    world w(seed);
    w.disk.skips_syncs = true;
    live_and_die(w, 20 + seed % 40);
    twice += w.shown_twice;
  }
  EXPECT_GT(twice, 0u);
}

TEST(ClientWalletEndings, AFailureToSyncIsTheLastThingItDoes) {
  unsynced_disk disk;
  auto w = *wallet::open(disk.handle(), key, "wallet");
  ASSERT_TRUE(w->add(many(3)));
  disk.fails = true;
  EXPECT_TRUE(refused(w->take(key_of_test().published(), digest), "the disk cannot sync; open"));
  disk.fails = false;
  EXPECT_TRUE(refused(w->take(key_of_test().published(), digest), "the disk cannot sync; open"));
  EXPECT_TRUE(refused(w->add(many(1, 50)), "the disk cannot sync; open"));
  EXPECT_TRUE(w->claimable().empty());  // nobody may claim what was never shown
  w.reset();
  w = *wallet::open(disk.handle(), key, "wallet");
  EXPECT_EQ(w->count().tokens + w->count().open, 3u);
}

TEST(ClientWalletEndings, AnAnswerIsHandedOnWithoutASync) {
  unsynced_disk disk;
  auto w = *wallet::open(disk.handle(), key, "wallet");
  ASSERT_TRUE(w->add(many(4)));
  auto t = *w->take(key_of_test().published(), digest);
  const uint64_t before = disk.syncs();
  ASSERT_TRUE(w->forget(t->token.nonce));
  EXPECT_EQ(disk.syncs(), before);
  EXPECT_EQ(w->count().open, 0u);
  auto next = *w->take(key_of_test().published(), digest);
  EXPECT_EQ(disk.syncs(), before + 1);
  disk.end_after(1, ending::power_loss, 1);
  w.reset();
  disk.restart();
  w = *wallet::open(disk.handle(), key, "wallet");  // the next change took it along
  EXPECT_EQ(w->count(), (wallet::numbers{2, 1}));
  EXPECT_EQ(w->claimable(), std::vector{next->token.nonce});
}

/// That `holds` becomes true; whoever waits in vain for it says so, rather than for ever.
bool comes_true(const std::function<bool()>& holds) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::yield();
  }
  return true;
}

TEST(ClientWalletThreads, ShareTheNextSyncAndCountWithoutOne) {
  constexpr size_t callers = 16;
  unsynced_disk disk;
  auto w = *wallet::open(disk.handle(), key, "wallet");
  ASSERT_TRUE(w->add(many(callers)));
  const uint64_t before = disk.syncs();
  // The first sync lasts until all have noted theirs, as who counts meanwhile can see.
  bool seen = true;
  disk.before_sync = [&] {
    seen = seen && comes_true([&] { return w->count().tokens == 0; }) && w->claimable().empty();
  };
  std::vector<std::future<hash32>> shown;
  for (size_t i = 0; i < callers; ++i)
    shown.push_back(std::async(std::launch::async, [&] {
      auto t = w->take(key_of_test().published(), digest);
      return t && *t ? (*t)->token.nonce : hash32{};
    }));
  std::set<hash32> nonces;
  for (auto& s : shown) nonces.insert(s.get());
  EXPECT_EQ(nonces.size(), callers);
  EXPECT_FALSE(nonces.contains(hash32{}));
  EXPECT_TRUE(seen);
  EXPECT_EQ(disk.syncs() - before, 2u);
  disk.before_sync = {};
}

TEST(ClientWalletThreads, AllOfThemHearThatTheDiskFailed) {
  unsynced_disk disk;
  auto w = *wallet::open(disk.handle(), key, "wallet");
  ASSERT_TRUE(w->add(many(8)));
  disk.fails = true;
  std::vector<std::future<bool>> went;
  for (int i = 0; i < 8; ++i)
    went.push_back(std::async(std::launch::async,
                              [&] { return bool(w->take(key_of_test().published(), digest)); }));
  for (auto& g : went) EXPECT_FALSE(g.get());
}

TEST(ClientWalletThreads, PayForManyCallsAtOnce) {
  constexpr uint32_t threads = 8, each = 40;
  unsynced_disk disk;
  auto w = *wallet::open(disk.handle(), key, "wallet");
  ASSERT_TRUE(w->add(many(threads * each)));
  std::vector<std::future<std::vector<hash32>>> shown;
  for (uint32_t t = 0; t < threads; ++t)
    shown.push_back(std::async(std::launch::async, [&] {
      std::vector<hash32> mine;
      for (uint32_t i = 0; i < each; ++i) {
        auto o = w->take(key_of_test().published(), digest);
        if (!o || !*o) continue;
        mine.push_back((*o)->token.nonce);
        if (i % 4 == 0)
          w->leave_open(mine.back());
        else
          EXPECT_TRUE(w->forget(mine.back()));
        (void)w->count_by_key();
        (void)w->claimable();
      }
      return mine;
    }));
  std::set<hash32> nonces;
  for (auto& s : shown)
    for (const auto& nonce : s.get()) EXPECT_TRUE(nonces.insert(nonce).second);
  EXPECT_EQ(nonces.size(), threads * each);
  w.reset();
  w = *wallet::open(disk.handle(), key, "wallet");
  EXPECT_EQ(w->count(), (wallet::numbers{0, threads * each / 4}));
}

}  // namespace
}  // namespace lethe

#include <atomic>
#include <condition_variable>

#include "store_samples.hpp"

namespace lethe {
namespace {

using namespace test;
using what = change_state::what;

class StoreSpend : public ::testing::Test {
 protected:
  temporary_folder folder_;
  store_place place_{folder_ / "spent.db"};
};

/// A ledger that waits at each commit, and fails as long as it is told to.
class slow_ledger final : public spend_ledger {
 public:
  struct hand {
    std::mutex mutex;
    std::condition_variable moved;
    bool held = true, fails = false;
    size_t waiting = 0;  // commits that wait
    std::vector<size_t> batches;
    std::vector<settlement> settled;

    void let_go() {
      std::lock_guard lock(mutex);
      held = false;
      moved.notify_all();
    }
    void wait_for_commit() {
      std::unique_lock lock(mutex);
      moved.wait(lock, [this] { return waiting > 0; });
    }
    void wait_for_settles(size_t n) {
      std::unique_lock lock(mutex);
      moved.wait(lock, [this, n] { return settled.size() >= n; });
    }
  };
  explicit slow_ledger(std::shared_ptr<hand> h) : hand_(std::move(h)) {}

  result<void> commit(std::span<spend_entry> spends, std::span<const settlement> settles) override {
    std::unique_lock lock(hand_->mutex);
    ++hand_->waiting;
    hand_->moved.notify_all();
    hand_->moved.wait(lock, [this] { return !hand_->held; });
    --hand_->waiting;
    if (hand_->fails) return hand_->fails = false, fail("no disk");
    hand_->batches.push_back(spends.size());
    hand_->settled.insert(hand_->settled.end(), settles.begin(), settles.end());
    hand_->moved.notify_all();
    for (spend_entry& s : spends) s.fresh = true;
    return {};
  }
  result<change_state> state(const token_id&) override { return change_state{}; }
  result<uint64_t> count(const hash32&) override { return uint64_t{0}; }
  result<bool> drop_some(const hash32&) override { return false; }

 private:
  std::shared_ptr<hand> hand_;
};

TEST_F(StoreSpend, TakesATokenOnce) {
  auto store = open_spends(place_);
  EXPECT_TRUE(is_fresh(spend_now(*store, token_of(1), digest_of(1))));
  EXPECT_TRUE(is_spent_before(spend_now(*store, token_of(1), digest_of(1))));
  EXPECT_TRUE(is_spent_before(spend_now(*store, token_of(1), digest_of(2))));
  EXPECT_TRUE(is_fresh(spend_now(*store, token_of(2), digest_of(2))));
  EXPECT_TRUE(is_fresh(spend_now(*store, token_of(1, 9), digest_of(1))));  // of another key
  EXPECT_EQ(*count_of(*store, 0), 2u);
  EXPECT_EQ(*count_of(*store, 9), 1u);
}

TEST_F(StoreSpend, OfManyThreadsOneIsFirst) {
  constexpr uint32_t tokens = 200, threads = 8;
  std::vector<std::atomic<uint32_t>> fresh(tokens), before(tokens);
  {
    auto store = open_spends(place_);
    std::vector<std::thread> all;
    for (uint32_t t = 0; t < threads; ++t)
      all.emplace_back([&, t] {
        for (uint32_t i = 0; i < tokens; ++i) {
          const uint32_t n = (i * 7 + t * 31) % tokens;
          ASSERT_TRUE(store->spend(token_of(n), digest_of(t), [&, n](result<spend_answer> a) {
            ++(is_fresh(a) ? fresh : before)[n];
          }));
        }
      });
    for (std::thread& t : all) t.join();
  }
  for (uint32_t n = 0; n < tokens; ++n) {
    EXPECT_EQ(fresh[n], 1u);
    EXPECT_EQ(before[n], threads - 1);
  }
}

TEST_F(StoreSpend, ChangeIsDueUnlessTheAnswerWasDelivered) {
  auto store = open_spends(place_);
  EXPECT_TRUE(is(change_of(*store, token_of(0)), what::none));
  for (uint32_t n = 1; n <= 4; ++n) {
    ASSERT_TRUE(is_fresh(spend_now(*store, token_of(n), digest_of(n))));
    EXPECT_TRUE(is(change_of(*store, token_of(n)), what::open));
    ASSERT_TRUE(store->settle(token_of(n), outcome(n)));
    if (outcome(n) == outcome::delivered)
      EXPECT_TRUE(is(change_of(*store, token_of(n)), what::delivered));
    else
      EXPECT_TRUE(is_due(change_of(*store, token_of(n)), digest_of(n)));
  }
}

TEST_F(StoreSpend, TheFirstOutcomeStays) {
  auto store = open_spends(place_);
  ASSERT_TRUE(is_fresh(spend_now(*store, token_of(1), digest_of(1))));
  ASSERT_TRUE(store->settle(token_of(1), outcome::delivered));
  ASSERT_TRUE(store->settle(token_of(1), outcome::node_failed));
  EXPECT_TRUE(is(change_of(*store, token_of(1)), what::delivered));
  ASSERT_TRUE(store->settle(token_of(2), outcome::node_failed));  // nobody spent it
  EXPECT_TRUE(is(change_of(*store, token_of(2)), what::none));
}

TEST_F(StoreSpend, WhatWasOpenIsDueAfterARestart) {
  {
    auto store = open_spends(place_);
    for (uint32_t n : {1, 2}) ASSERT_TRUE(is_fresh(spend_now(*store, token_of(n), digest_of(n))));
    ASSERT_TRUE(store->settle(token_of(2), outcome::delivered));
  }
  auto store = open_spends(place_);
  EXPECT_TRUE(is_due(change_of(*store, token_of(1)), digest_of(1)));
  EXPECT_TRUE(is(change_of(*store, token_of(2)), what::delivered));
}

TEST_F(StoreSpend, DropsAKeyAndNoOther) {
  auto store = open_spends(place_);
  constexpr uint32_t many = 2 * limits::drop_slice_rows + 1;
  std::promise<void> last;
  for (uint32_t n = 0; n < many; ++n)
    ASSERT_TRUE(store->spend(token_of(n), digest_of(n), [&last, n](auto) {
      if (n == many - 1) last.set_value();
    }));
  last.get_future().wait();
  ASSERT_TRUE(is_fresh(spend_now(*store, token_of(0, 1), digest_of(0))));
  ASSERT_EQ(*count_of(*store, 0), many);
  EXPECT_TRUE(drop_now(*store, 0));
  EXPECT_EQ(*count_of(*store, 0), 0u);
  EXPECT_EQ(*count_of(*store, 1), 1u);
}

TEST_F(StoreSpend, RemovesASliceAtATime) {
  auto ledger = *open_sqlite_spends(place_);
  for (uint32_t more : {0u, 1u}) {
    std::vector<spend_entry> spends;
    for (uint32_t n = 0; n < limits::drop_slice_rows - 1 + more; ++n)
      spends.push_back({token_of(n), digest_of(n)});
    ASSERT_TRUE(ledger->commit(spends, {}));
    EXPECT_EQ(*ledger->drop_some(key_of(0)), more == 1);
    EXPECT_EQ(*ledger->count(key_of(0)), 0u);
  }
  std::vector<spend_entry> spends;
  for (uint32_t n = 0; n <= limits::drop_slice_rows; ++n)
    spends.push_back({token_of(n), digest_of(n)});
  ASSERT_TRUE(ledger->commit(spends, {}));
  EXPECT_TRUE(*ledger->drop_some(key_of(0)));
  EXPECT_EQ(*ledger->count(key_of(0)), 1u);
}

TEST(StoreQueue, AllThatWaitsGoesIntoOneCommit) {
  auto hand = std::make_shared<slow_ledger::hand>();
  {
    spend_store store(std::make_unique<slow_ledger>(hand));
    ASSERT_TRUE(store.spend(token_of(0), digest_of(0), [](auto) {}));
    hand->wait_for_commit();
    for (uint32_t n = 1; n <= 100; ++n)
      ASSERT_TRUE(store.spend(token_of(n), digest_of(n), [](auto) {}));
    hand->let_go();
  }
  EXPECT_EQ(hand->batches, (std::vector<size_t>{1, 100}));
}

TEST(StoreQueue, IsBusyWhenItIsFull) {
  auto hand = std::make_shared<slow_ledger::hand>();
  std::atomic<uint32_t> answered = 0;
  auto count = [&answered](auto) { ++answered; };
  {
    spend_store store(std::make_unique<slow_ledger>(hand), {.waiting_max = 3, .settles_max = 2});
    ASSERT_TRUE(store.spend(token_of(0), digest_of(0), count));
    hand->wait_for_commit();
    for (uint32_t n = 1; n <= 3; ++n) EXPECT_TRUE(store.spend(token_of(n), digest_of(n), count));
    EXPECT_FALSE(store.spend(token_of(4), digest_of(4), count));
    for (uint32_t n = 0; n < 2; ++n) EXPECT_TRUE(store.settle(token_of(n), outcome::delivered));
    EXPECT_FALSE(store.settle(token_of(2), outcome::delivered));
    for (uint32_t n = 0; n < 3; ++n) EXPECT_TRUE(store.ask_change(token_of(n), count));
    EXPECT_FALSE(store.ask_change(token_of(3), count));
    EXPECT_FALSE(store.count(key_of(3), count));
    hand->let_go();
  }
  EXPECT_EQ(answered, 1u + 3u + 3u);
}

TEST(StoreQueue, AFailureIsToldAndOutcomesAreTriedAgain) {
  auto hand = std::make_shared<slow_ledger::hand>();
  hand->fails = true;
  spend_store store(std::make_unique<slow_ledger>(hand));
  ASSERT_TRUE(store.settle(token_of(7), outcome::delivered));
  ASSERT_TRUE(store.settle(token_of(8), outcome::refused_by_node));
  hand->wait_for_commit();
  hand->let_go();
  hand->wait_for_settles(2);
  EXPECT_EQ(hand->settled[0].token, token_of(7));
  EXPECT_EQ(hand->settled[1].is, outcome::refused_by_node);
  {
    std::lock_guard lock(hand->mutex);
    hand->fails = true;
  }
  auto answer = spend_now(store, token_of(1), digest_of(1));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.why().text, "no disk");
  EXPECT_TRUE(is_fresh(spend_now(store, token_of(1), digest_of(1))));
}

}  // namespace
}  // namespace lethe

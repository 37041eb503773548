// What the stores have answered for outlives a cut of the power and kill -9.

#include <atomic>

#include "runtime/store/account_store.hpp"
#include "runtime/store/change_store.hpp"
#include "store_samples.hpp"
#include "store_unsynced_vfs.hpp"

namespace lethe {
namespace {

using namespace test;
using what = change_state::what;

struct toll {
  size_t reported = 0, lost = 0;
};

/// Spends until the power is cut, and looks for all that were told `fresh`.
toll after_power_cut(unsynced_disk& disk, uint32_t run) {
  std::mt19937 random(run);
  temporary_folder folder;
  const store_place place{folder / "spent.db", disk.name()};
  std::vector<uint32_t> reported;
  {
    auto store = open_spends(place, {.waiting_max = 1 + run % 8});
    if (!store) return {};
    disk.cut_after(1 + random() % 6000, run);
    spend_until(
        *store, [&disk] { return disk.is_cut(); },
        [&](uint32_t n) {
          if (!disk.is_cut()) reported.push_back(n);
        });
  }
  disk.restart();
  auto again = open_sqlite_spends(place);
  if (!again) return {reported.size(), reported.size()};
  size_t lost = 0;
  for (uint32_t n : reported) lost += !is_due((*again)->state(token_of(n)), digest_of(n));
  return {reported.size(), lost};
}

TEST(StorePowerLoss, NoSpendThatWasToldFreshIsLost) {
  size_t reported = 0;
  for (uint32_t run = 0; run < 20; ++run) {
    unsynced_disk disk("unsynced");
    const toll t = after_power_cut(disk, run);
    EXPECT_EQ(t.lost, 0u) << "run " << run;
    EXPECT_GT(disk.syncs(), 0u);
    reported += t.reported;
  }
  EXPECT_GT(reported, 1000u);
}

TEST(StorePowerLoss, TheTestFindsWhatIsLostWithoutSyncs) {
  size_t lost = 0;
  for (uint32_t run = 0; run < 20; ++run) {
    unsynced_disk disk("unsynced");
    disk.ignores_full = disk.claims_full = true;
    synchronous_off off;
    lost += after_power_cut(disk, run).lost;
  }
  EXPECT_GT(lost, 0u);
}

TEST(StorePowerLoss, AChangeThatWasSignedIsNotForgotten) {
  for (uint32_t run = 0; run < 5; ++run) {
    unsynced_disk disk("unsynced");
    temporary_folder folder;
    const store_place place{folder / "changed.db", disk.name()};
    std::vector<uint32_t> recorded;
    {
      auto store = change_store::open(place);
      ASSERT_TRUE(store) << store.why().text;
      disk.cut_after(100 + 700 * run, run);
      for (uint32_t n = 0; !disk.is_cut(); ++n) {
        auto answer = (*store)->record(token_of(n), digest_of(n));
        if (answer && !disk.is_cut()) recorded.push_back(n);
      }
    }
    disk.restart();
    auto store = change_store::open(place);
    ASSERT_TRUE(store) << store.why().text;
    ASSERT_FALSE(recorded.empty());
    for (uint32_t n : recorded)
      EXPECT_EQ(*(*store)->record(token_of(n), digest_of(n + 1)), change_record::refused);
  }
}

TEST(StoreKill, NoSpendThatWasToldFreshIsLost) {
  for (uint32_t run = 0; run < 20; ++run) {
    std::mt19937 random(run);
    temporary_folder folder;
    const store_place place{folder / "spent.db"};
    auto reported = reported_before_kill(1 + random() % 400, [&](const reporter& report) {
      auto store = open_spends(place, {.waiting_max = 1 + run * 3});
      if (store)
        spend_until(
            *store, [] { return false; }, report);
    });
    ASSERT_FALSE(reported.empty());
    auto store = open_spends(place);
    ASSERT_TRUE(store);
    for (uint32_t n : reported) {
      EXPECT_TRUE(is_spent_before(spend_now(*store, token_of(n), digest_of(n))));
      EXPECT_TRUE(is_due(change_of(*store, token_of(n)), digest_of(n)));  // it was open
    }
  }
}

TEST(StoreKill, AChangeThatWasRecordedIsNotForgotten) {
  for (uint32_t run = 0; run < 5; ++run) {
    temporary_folder folder;
    const store_place place{folder / "changed.db"};
    auto recorded = reported_before_kill(1 + 20 * run, [&place](const reporter& report) {
      auto store = change_store::open(place);
      for (uint32_t n = 0; store && (*store)->record(token_of(n), digest_of(n)); ++n) report(n);
    });
    auto store = change_store::open(place);
    ASSERT_TRUE(store) << store.why().text;
    ASSERT_FALSE(recorded.empty());
    for (uint32_t n : recorded)
      EXPECT_EQ(*(*store)->record(token_of(n), digest_of(n + 1)), change_record::refused);
  }
}

TEST(StoreKill, WhatWasChargedStaysCharged) {
  constexpr uint32_t epoch = 7, quota = 1'000'000;
  for (uint32_t run = 0; run < 5; ++run) {
    temporary_folder folder;
    const store_place place{folder / "accounts.db"};
    auto charged = reported_before_kill(1 + 20 * run, [&place](const reporter& report) {
      auto store = account_store::open(place);
      if (!store || !(*store)->add("ann", quota, {})) return;
      for (uint32_t n = 0;; ++n) {
        auto answer = (*store)->charge("ann", 3, epoch);
        if (!answer || *answer != charge_answer::charged) return;
        report(n);
      }
    });
    auto store = account_store::open(place);
    ASSERT_TRUE(store) << store.why().text;
    EXPECT_GE(*(*store)->used("ann", epoch), 3 * charged.size());
    EXPECT_LE(*(*store)->used("ann", epoch), 3 * charged.size() + 3);
    EXPECT_EQ(*(*store)->buyers(epoch), 1u);
  }
}

}  // namespace
}  // namespace lethe

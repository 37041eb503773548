// An issuer that turns its token epochs loses its power at any moment, and what it did not sync
// with it: each epoch keeps the one key that was published for it, and its own sum of purchases.
// The program is linked with tests/e2e/preload/disk.cpp, so that its own syncs are recorded.

#include "runtime/issuer/epoch_turns.hpp"
#include "runtime/issuer/issuer.hpp"
#include "tests/e2e/power_disk.hpp"
#include "tests/unit/store_samples.hpp"

namespace lethe {
namespace {

constexpr uint32_t epoch_s = 1000, charged = 3;

uint32_t word_of(const token_spki& key) {
  uint32_t word = 0;
  const hash32 id = sha256({key});
  std::memcpy(&word, id.data(), sizeof word);
  return word;
}

/// Reports EPOCH 0 WORD for each key that is published, and EPOCH 1 0 for each charge.
void turn_epochs(const std::string& folder, uint32_t epoch, const test::reporter& report) {
  auto accounts = open_accounts(folder);
  if (!accounts) return;
  auto changes = change_store::open({folder + "/changed.db"});
  if (!changes) return;
  if ((*accounts)->list()->empty() && !(*accounts)->add("ann", 1'000'000, {})) return;
  epoch_turns turns(folder, epoch_s, **accounts, **changes);
  for (;; ++epoch) {
    if (!turns.turn(uint64_t{epoch} * epoch_s)) return;
    const auto shown = *read_directory(*turns.directory());
    for (const auto& k : shown.keys)
      for (uint32_t n : {uint32_t(*k.not_before_s / epoch_s), 0u, word_of(k.key)}) report(n);
    for (int i = 0; i < 5; ++i) {
      if (*(*accounts)->charge("ann", charged, epoch) != charge_answer::charged) return;
      for (uint32_t n : {epoch, 1u, 0u}) report(n);
    }
  }
}

struct seen {
  std::map<uint32_t, std::set<uint32_t>> keys;  // by epoch
  std::map<uint32_t, uint32_t> charges;
  uint32_t epoch = 10, used = 0;  // the last one, and what its sum is in the end

  void take(const std::vector<uint32_t>& said) {
    for (size_t i = 0; i + 2 < said.size(); i += 3) {
      if (said[i + 1] == 0) keys[said[i]].insert(said[i + 2]);
      if (said[i + 1] == 1) ++charges[epoch = said[i]];
    }
  }
};

/// Lives and falls with one disk. With `lie`, syncs do nothing.
seen after_losses(uint32_t seed, bool lie) {
  scratch_folder here;
  ::setenv("LETHE_TEST_DISKS", (here / "disks").c_str(), 1);
  power_disk disk(here / "disks/one");
  std::mt19937 random(seed);
  seen all;
  for (int life = 0; life < 5; ++life) {
    if (lie) disk.believe_no_sync_of("/issuer");
    all.take(test::reported_before_kill(1 + random() % 60, [&](const test::reporter& report) {
      turn_epochs(disk / "issuer", all.epoch, report);
    }));
    disk.lose_power(lie || life % 2 == 0 ? nullptr : &random);
  }
  auto accounts = open_accounts(disk / "issuer");
  all.used = uint32_t(*(*accounts)->used("ann", all.epoch));
  ::unsetenv("LETHE_TEST_DISKS");
  return all;
}

TEST(IssuerPowerLoss, AnEpochKeepsTheKeyThatWasPublishedForIt) {
  for (uint32_t seed = 0; seed < 3; ++seed) {
    auto all = after_losses(seed, false);
    std::set<uint32_t> words;
    for (const auto& [epoch, keys] : all.keys) {
      EXPECT_EQ(keys.size(), 1u) << "epoch " << epoch << ", seed " << seed;
      words.insert(keys.begin(), keys.end());
    }
    EXPECT_EQ(words.size(), all.keys.size()) << "one key for two epochs, seed " << seed;
    EXPECT_GT(all.keys.size(), 2u);
    EXPECT_GE(all.used, charged * all.charges[all.epoch]) << "quota came back, seed " << seed;
  }
}

TEST(IssuerPowerLoss, TheTestFindsWhatWasNotSynced) {
  auto all = after_losses(1, true);
  EXPECT_TRUE(std::ranges::any_of(all.keys, [](const auto& k) { return k.second.size() > 1; }));
  EXPECT_LT(all.used, charged * all.charges[all.epoch]);
}

}  // namespace
}  // namespace lethe

// What a wallet's files may be found to be: damaged, cut, mixed up, older than they were.
#include "tests/unit/client_unsynced_disk.hpp"
#include "tests/unit/client_wallet_samples.hpp"

namespace lethe {
namespace {

using namespace test;

constexpr size_t page = 4096, commits_at = 3;  // pages
const bytes key = random_bytes(32, 5);

result<std::unique_ptr<wallet>> open_on(unsynced_disk& disk) {
  return wallet::open(disk.handle(), key, "wallet");
}
std::optional<token_offer> take(wallet& w) {
  auto taken = w.take(key_of_test().published(), digest);
  EXPECT_TRUE(taken) << taken.why().text;
  return taken ? *taken : std::nullopt;
}

/// A wallet with five tokens whose process was killed after it had shown three, each in a commit of
/// its own.
struct ClientWalletJournal : ::testing::Test {
  ClientWalletJournal() {
    auto w = *open_on(disk);
    EXPECT_TRUE(w->add(many(5)));
    w.reset();
    w = *open_on(disk);
    before = {disk.file, disk.journal};
    for (int i = 0; i < 3; ++i) shown.push_back(take(*w)->token.nonce);
    disk.end_after(0, unsynced_disk::ending::kill, 1);
    w.reset();
    disk.restart();
    last = {disk.file, disk.journal};
  }
  struct files {
    std::optional<bytes> file;
    bytes journal;
  };
  void put(const files& f) { disk.file = f.file, disk.journal = f.journal; }
  /// All is as it was left.
  ::testing::AssertionResult whole() {
    auto w = open_on(disk);
    if (!w) return ::testing::AssertionFailure() << w.why().text;
    auto open = (*w)->claimable();
    std::ranges::sort(open);
    auto known = shown;
    std::ranges::sort(known);
    if ((*w)->count().tokens == 2 && open == known) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << (*w)->count().tokens << " tokens, " << open.size();
  }
  bytes page_of(size_t n) const {
    return {last.journal.begin() + long(n * page), last.journal.begin() + long((n + 1) * page)};
  }
  void put_page(size_t n, const bytes& b) {
    std::ranges::copy(b, disk.journal.begin() + long(n * page));
  }

  unsynced_disk disk;
  files before, last;
  std::vector<hash32> shown;
};

TEST_F(ClientWalletJournal, IsReadAfterAKill) {
  EXPECT_TRUE(whole());
  EXPECT_TRUE(whole());  // and again, from the file
}

TEST_F(ClientWalletJournal, RefusesDamageToWhatWasConfirmed) {
  // Nonce, sealed changes and tag; what comes after them in a page means nothing.
  const size_t record = 32 + 743 + 16;
  for (size_t n : {commits_at, commits_at + 1, commits_at + 2})
    for (size_t at = 0; at < record; at += 7) {
      put(last);
      disk.journal[n * page + at] ^= std::byte{1};
      EXPECT_TRUE(refused(open_on(disk), "wallet.journal: damaged at page ")) << n << ", " << at;
    }
  for (size_t at = 0; at < last.journal.size() / 64; at += 61) {
    put(last);
    disk.journal[at] ^= std::byte{1};
    if (open_on(disk)) {
      put(last);
      disk.journal[at] ^= std::byte{1};
      EXPECT_TRUE(whole()) << at;
    }
  }
}

TEST_F(ClientWalletJournal, RefusesDamageToTheFileAndEveryCut) {
  for (size_t at = 0; at < last.file->size(); at += 7) {
    put(last);
    (*disk.file)[at] ^= std::byte{1};
    EXPECT_TRUE(refused(open_on(disk), "wallet: ")) << at;
  }
  for (size_t size = 0; size < last.file->size(); size += 5) {
    put(last);
    disk.file->resize(size);
    EXPECT_TRUE(refused(open_on(disk), "wallet: ")) << size;
  }
  for (size_t size = 0; size < last.journal.size(); size += 997) {
    put(last);
    disk.journal.resize(size);
    EXPECT_TRUE(refused(open_on(disk), "wallet.journal: ")) << size;
  }
  put(last);
  disk.journal.push_back({});
  EXPECT_TRUE(refused(open_on(disk), "wallet.journal: "));
}

TEST_F(ClientWalletJournal, RefusesRecordsThatAreMovedReplayedOrLeftOut) {
  for (size_t to = 0; to < 8; ++to)
    for (size_t from = 0; from < 7; ++from) {
      if (from == to || (from < commits_at && to < commits_at)) continue;
      put(last);
      put_page(to, page_of(from));
      // Page 0 has an older file's announcement: behind the commits it means nothing.
      if (from == 0 && to > commits_at + 2)
        EXPECT_TRUE(whole()) << to;
      else
        EXPECT_FALSE(open_on(disk)) << from << " to " << to;
    }
  put(last);
  put_page(commits_at, page_of(commits_at + 1));
  put_page(commits_at + 1, page_of(commits_at));
  EXPECT_TRUE(refused(open_on(disk), "wallet.journal: damaged at page 3"));
  for (size_t n : {commits_at, commits_at + 1, commits_at + 2}) {
    put(last);
    put_page(n, bytes(page));
    EXPECT_TRUE(refused(open_on(disk), "wallet.journal: damaged at page ")) << n;
  }
}

/// The same bytes, but that nothing says that they were confirmed: a crash may leave that.
TEST_F(ClientWalletJournal, DropsALastRecordThatNothingConfirms) {
  put_page(commits_at + 3, bytes(page));
  EXPECT_TRUE(whole());
  put(last);
  put_page(commits_at + 3, bytes(page));
  disk.journal[(commits_at + 2) * page + 100] ^= std::byte{1};
  auto w = open_on(disk);
  ASSERT_TRUE(w) << w.why().text;
  EXPECT_EQ((*w)->count(), (wallet::numbers{3, 2}));
}

TEST_F(ClientWalletJournal, RefusesAFileThatIsCopiedBack) {
  {
    auto w = *open_on(disk);
    take(*w);
  }
  files now{disk.file, disk.journal};
  for (const files& old : {before, last}) {
    put({old.file, now.journal});
    EXPECT_TRUE(refused(open_on(disk), "wallet: an older copy of this wallet"));
    put({now.file, old.journal});
    EXPECT_TRUE(refused(open_on(disk), "wallet.journal: an older copy of this journal"));
  }
  put(now);
  EXPECT_TRUE(open_on(disk));
  disk.journal.assign(disk.journal.size(), {});
  EXPECT_TRUE(refused(open_on(disk), "wallet.journal: an older copy of this journal, or of an"));
}

/// A token that was shown by a commit that wrote the file is known to that file alone.
TEST_F(ClientWalletJournal, RefusesTheFileBeforeOneThatAlsoShowedATokenOrTwo) {
  auto w = *open_on(disk);
  ASSERT_TRUE(w->add(many(600, 1000)));
  for (int i = 0; i < 252; ++i) take(*w);
  const files full{disk.file, disk.journal};
  const uint64_t replaced = disk.replaced();
  take(*w);
  EXPECT_EQ(disk.replaced(), replaced + 1);
  const files next{disk.file, disk.journal};
  disk.end_after(0, unsynced_disk::ending::kill, 1);
  w.reset();
  disk.restart();
  put({full.file, next.journal});
  EXPECT_TRUE(refused(open_on(disk), "wallet: an older copy of this wallet"));
  put({next.file, full.journal});
  EXPECT_TRUE(refused(open_on(disk), "wallet.journal: an older copy of this journal"));
  put(next);
  EXPECT_EQ((*open_on(disk))->count(), (wallet::numbers{602 - 253, 3 + 253}));
}

/// The next file is announced, and the process ends before or after it comes.
TEST_F(ClientWalletJournal, TakesEitherFileUntilTheSecondHasCome) {
  (*open_on(disk)).reset();
  const files next{disk.file, disk.journal};
  EXPECT_TRUE(whole());
  put(next);
  put_page(2, page_of(2));  // what was said of the file before
  EXPECT_TRUE(whole());
  put({last.file, next.journal});
  put_page(2, page_of(2));
  EXPECT_TRUE(whole());
}

TEST_F(ClientWalletJournal, MissesAFileThatIsGone) {
  disk.file.reset();
  EXPECT_TRUE(refused(open_on(disk), "wallet: it is gone"));
  EXPECT_TRUE(refused(open_on(disk), "wallet: it is gone"));
  disk.journal.clear();
  auto w = open_on(disk);
  ASSERT_TRUE(w) << w.why().text;
  EXPECT_EQ((*w)->count(), wallet::numbers());
  w->reset();
  disk.file.reset();
  EXPECT_TRUE(refused(open_on(disk), "wallet: it is gone"));
  put_page(2, bytes(page));  // it was announced, and never came
  EXPECT_TRUE(open_on(disk));
}

TEST_F(ClientWalletJournal, BeginsAnewWhenItIsFull) {
  auto w = *open_on(disk);
  ASSERT_TRUE(w->add(many(600, 1000)));
  const uint64_t replaced = disk.replaced(), syncs = disk.syncs();
  for (int i = 0; i < 252; ++i) w->leave_open(take(*w)->token.nonce);
  EXPECT_EQ(disk.syncs() - syncs, 252u);  // one a change
  EXPECT_EQ(disk.replaced(), replaced);
  take(*w);
  EXPECT_EQ(disk.replaced(), replaced + 1);
  for (int i = 0; i < 300; ++i) take(*w);
  EXPECT_EQ(disk.replaced(), replaced + 2);
  disk.end_after(0, unsynced_disk::ending::kill, 1);
  w.reset();
  disk.restart();
  w = *open_on(disk);
  EXPECT_EQ(w->count(), (wallet::numbers{602 - 553, 3 + 553}));
}

}  // namespace
}  // namespace lethe

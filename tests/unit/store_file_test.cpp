#include <sys/stat.h>

#include <fstream>

#include "runtime/store/account_store.hpp"
#include "runtime/store/change_store.hpp"
#include "store_samples.hpp"
#include "store_unsynced_vfs.hpp"

namespace lethe {
namespace {

using namespace test;

std::string why_not(const store_place& place) {
  auto opened = open_sqlite_spends(place);
  return opened ? "" : opened.why().text;
}

void expect_refused(const store_place& place, std::string_view why) {
  const std::string text = why_not(place);
  EXPECT_NE(text.find(why), text.npos) << "\"" << text << "\" does not say \"" << why << "\"";
  EXPECT_TRUE(text.starts_with(place.file.string())) << text;
}

class StoreFile : public ::testing::Test {
 protected:
  void fill(uint32_t tokens) {
    auto ledger = open_sqlite_spends(place_);
    ASSERT_TRUE(ledger) << ledger.why().text;
    std::vector<spend_entry> spends;
    for (uint32_t n = 0; n < tokens; ++n) spends.push_back({token_of(n), digest_of(n)});
    ASSERT_TRUE((*ledger)->commit(spends, {}));
  }
  void overwrite(std::streamoff at, size_t bytes) {
    std::fstream file(place_.file, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(at);
    file << std::string(bytes, '\x5a');
  }

  temporary_folder folder_;
  store_place place_{folder_ / "spent.db"};
};

TEST_F(StoreFile, IsForItsOwnerOnly) {
  auto ledger = open_sqlite_spends(place_);
  ASSERT_TRUE(ledger);
  spend_entry one[] = {{token_of(1), digest_of(1)}};
  ASSERT_TRUE((*ledger)->commit(one, {}));
  for (const auto& entry : fs::directory_iterator(folder_.path()))
    EXPECT_EQ(entry.status().permissions(), fs::perms::owner_read | fs::perms::owner_write)
        << entry.path();
}

TEST_F(StoreFile, RefusesOneThatOthersMayRead) {
  fill(1);
  for (mode_t mode : {0640, 0604, 0620, 0602}) {
    ::chmod(place_.file.c_str(), mode);
    expect_refused(place_, "chmod 600");
  }
  ::chmod(place_.file.c_str(), 0600);
  EXPECT_EQ(why_not(place_), "");
}

TEST_F(StoreFile, RefusesWhatIsNoFile) {
  fs::create_directory(place_.file);
  expect_refused(place_, "not a regular file");
  expect_refused({folder_ / "missing" / "spent.db"}, "cannot create");
}

TEST_F(StoreFile, IsOpenInOneProcess) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  pid_t child = ::fork();
  if (child == 0) {
    auto ledger = open_sqlite_spends(place_);
    char told = ledger ? 'y' : 'n';
    if (::write(ends[1], &told, 1) == 1) ::pause();
    ::_exit(1);
  }
  char told = 0;
  ASSERT_EQ(::read(ends[0], &told, 1), 1);
  EXPECT_EQ(told, 'y');
  expect_refused(place_, "another process has it open");
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(why_not(place_), "");  // the lock died with it
}

TEST_F(StoreFile, IsOpenOnceInAProcess) {
  auto first = open_sqlite_spends(place_);
  ASSERT_TRUE(first);
  expect_refused(place_, "another process has it open");
  // The refused one has not taken the first one's lock along.
  pid_t child = ::fork();
  if (child == 0) ::_exit(why_not(place_).find("another process") != std::string::npos ? 0 : 1);
  int status = 1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(StoreFile, RefusesAnotherKind) {
  fill(1);
  auto changes = change_store::open(place_);
  ASSERT_FALSE(changes);
  EXPECT_NE(changes.why().text.find("not a store of changed tokens"), std::string::npos);
  EXPECT_FALSE(account_store::open(place_));
  EXPECT_EQ(why_not(place_), "");
}

TEST_F(StoreFile, RefusesTextOfSomebody) {
  std::ofstream(place_.file) << std::string(5000, 'x');
  ::chmod(place_.file.c_str(), 0600);
  expect_refused(place_, "damaged, or no file of SQLite's");
}

TEST_F(StoreFile, RefusesADamagedPage) {
  fill(2000);
  const auto size = std::streamoff(fs::file_size(place_.file));
  ASSERT_GT(size, 40 * 4096);
  overwrite(20 * 4096, 200);
  expect_refused(place_, "damaged");
}

TEST_F(StoreFile, RefusesACutFile) {
  fill(2000);
  fs::resize_file(place_.file, fs::file_size(place_.file) / 2);
  expect_refused(place_, "damaged");
}

TEST_F(StoreFile, AsksNothingOfADiskThatFailed) {
  unsynced_disk disk("unsynced");
  auto ledger = open_sqlite_spends({place_.file, disk.name()});
  ASSERT_TRUE(ledger);
  spend_entry one[] = {{token_of(1), digest_of(1)}};
  disk.fails = true;
  auto failed = (*ledger)->commit(one, {});
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.why().text.find("mend the disk"), std::string::npos) << failed.why().text;
  disk.fails = false;  // what it holds by now, nobody knows
  auto later = (*ledger)->commit(one, {});
  ASSERT_FALSE(later);
  EXPECT_EQ(later.why().text, failed.why().text);
  ledger->reset();
  ledger = open_sqlite_spends({place_.file, disk.name()});
  ASSERT_TRUE(ledger) << ledger.why().text;
  EXPECT_FALSE(is((*ledger)->state(token_of(1)), change_state::what::open));
}

TEST_F(StoreFile, RefusesADiskThatIsNotAskedToSync) {
  unsynced_disk disk("unsynced");
  disk.ignores_full = true;
  synchronous_off off;
  expect_refused({place_.file, disk.name()}, "PRAGMA synchronous gives \"0\"");
}

TEST_F(StoreFile, DroppedTokensAreOverwritten) {
  const token_id kept = token_of(1, 1), gone = token_of(2, 2);
  {
    auto ledger = *open_sqlite_spends(place_);
    spend_entry both[] = {{kept, digest_of(1)}, {gone, digest_of(2)}};
    ASSERT_TRUE(ledger->commit(both, {}));
    ASSERT_TRUE(ledger->drop_some(gone.key_id));
  }
  std::ifstream file(place_.file, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  EXPECT_NE(bytes.find(as_text(kept.nonce)), bytes.npos);
  EXPECT_EQ(bytes.find(as_text(gone.nonce)), bytes.npos);
}

}  // namespace
}  // namespace lethe

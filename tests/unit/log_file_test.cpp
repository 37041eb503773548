#include "runtime/log/log_file.hpp"

#include <sys/wait.h>

#include "tests/unit/log_samples.hpp"

namespace lethe {
namespace {

using namespace test;

result<log_file> reopened(const fs::path& folder) { return log_file::open(folder, log_signer()); }

/// Of odd lengths, so that no two ends of entries lie alike.
std::vector<log_entry> batch(uint32_t first, uint32_t count) {
  std::vector<log_entry> out;
  for (uint32_t i = first; i < first + count; ++i)
    out.push_back(sample(log_kind::roster, i, std::string(i % 7, 'r')));
  return out;
}

void copy_state(const fs::path& from, const fs::path& to) {
  fs::remove_all(to);
  fs::create_directories(to);
  for (const char* file : {"entries", "head", "checkpoint"})
    if (fs::exists(from / file)) put_file(to / file, file_bytes(from / file));
}

TEST(LogFile, WhatWasAppendedIsThereAfterReopening) {
  scratch here;
  std::string head;
  {
    auto log = log_file::create(here / "log", log_signer());
    ASSERT_TRUE(log) << log.why().text;
    ASSERT_TRUE(log->append(batch(1, 300)));
    auto appended = log->append({{sample(log_kind::policy, 1, "p")}});
    ASSERT_TRUE(appended);
    head = appended->text();
  }
  auto log = reopened(here / "log");
  ASSERT_TRUE(log) << log.why().text;
  EXPECT_EQ(log->head().text(), head);
  EXPECT_EQ(log->last_epoch(log_kind::roster), 300u);
  EXPECT_EQ(log->last_epoch(log_kind::release), std::nullopt);
  EXPECT_EQ(*log->entry(300), sample(log_kind::policy, 1, "p"));
  EXPECT_FALSE(log->entry(301));
  merkle_tree tree;
  for (uint64_t i = 0; i < 301; ++i) tree.append(leaf_hash(log->entry(i)->to_bytes()));
  EXPECT_EQ(tree.root(), log->head().head.root);
}

TEST(LogFile, ServesTilesAndBundlesOfItsHead) {
  scratch here;
  auto log = log_file::create(here / "log", log_signer());
  ASSERT_TRUE(log->append(batch(1, 300)));
  EXPECT_EQ(log->fetch("tile/0/000")->size(), 256u * 32);
  EXPECT_EQ(log->fetch("tile/0/001.p/44")->size(), 44u * 32);
  EXPECT_EQ(log->fetch("tile/0/001.p/43")->size(), 43u * 32);  // for readers of an older head
  EXPECT_EQ(log->fetch("tile/1/000.p/1")->size(), 32u);
  auto bundle = log->fetch("tile/entries/001.p/44");
  ASSERT_TRUE(bundle);
  auto parts = split_bundle(*bundle, 44);
  ASSERT_TRUE(parts);
  EXPECT_EQ(log_entry::from_bytes(parts->back())->epoch, 300u);
  EXPECT_FALSE(split_bundle(*bundle, 43));
  EXPECT_FALSE(split_bundle(*bundle, 45));
  for (const char* path : {"tile/0/001", "tile/0/001.p/45", "tile/0/002.p/1", "tile/2/000.p/1",
                           "tile/entries/x999/999/000", "head", "entries", "../log/head", ""})
    EXPECT_FALSE(log->fetch(path)) << path;
}

TEST(LogFile, EpochsRiseByOne) {
  scratch here;
  auto log = log_file::create(here / "log", log_signer());
  ASSERT_TRUE(log->append({{sample(log_kind::roster, 5)}}));
  EXPECT_TRUE(
      refused(log->append({{sample(log_kind::roster, 5)}}), "log: roster 5 would be a dup"));
  EXPECT_TRUE(
      refused(log->append({{sample(log_kind::roster, 4)}}), "log: roster 4 would be a dup"));
  EXPECT_TRUE(
      refused(log->append({{sample(log_kind::roster, 7)}}), "log: roster 7 would leave a gap"));
  // All or none.
  const std::vector<log_entry> mixed = {sample(log_kind::roster, 6), sample(log_kind::roster, 6)};
  EXPECT_TRUE(refused(log->append(mixed), "log: roster 6 would be a dup"));
  EXPECT_EQ(log->head().head.size, 1u);
  EXPECT_TRUE(log->append({{sample(log_kind::policy, 9), sample(log_kind::roster, 6)}}));
}

TEST(LogFile, EntriesHaveABound) {
  scratch here;
  auto log = log_file::create(here / "log", log_signer());
  EXPECT_TRUE(
      log->append({{sample(log_kind::release, 1, std::string(log_payload_bytes_max, 'x'))}}));
  EXPECT_FALSE(
      log->append({{sample(log_kind::release, 2, std::string(log_payload_bytes_max + 1, 'x'))}}));
  EXPECT_EQ(log->entry(0)->payload.size(), log_payload_bytes_max);
}

TEST(LogFile, HasOneWriter) {
  scratch here;
  auto log = log_file::create(here / "log", log_signer());
  ASSERT_TRUE(log);
  EXPECT_FALSE(reopened(here / "log"));
  EXPECT_FALSE(log_file::create(here / "log", log_signer()));
  { auto dead = *std::move(log); }
  EXPECT_FALSE(log_file::create(here / "log", log_signer()));
  EXPECT_TRUE(reopened(here / "log"));
}

TEST(LogFile, PublishesOnlyItsOwnHeadsAndNeverGoesBack) {
  scratch here;
  auto log = log_file::create(here / "log", log_signer());
  auto cosigned = [](signed_head n) {
    n.signatures.push_back(cosign_head(witness_signer(0), n.head, t0));
    return n;
  };
  auto first = cosigned(*log->append(batch(1, 1))), second = cosigned(*log->append(batch(2, 1)));
  EXPECT_FALSE(log->fetch("checkpoint"));
  EXPECT_TRUE(log->publish(second));
  EXPECT_TRUE(refused(log->publish(first), "log: readers have had"));
  free_log other;
  other.add(sample(log_kind::roster, 1, "other"));
  other.add(sample(log_kind::roster, 2, "other"));
  EXPECT_FALSE(log->publish(other.note(1, t0)));
  other.add(sample(log_kind::roster, 3, "other"));
  EXPECT_FALSE(log->publish(other.note(1, t0)));
  EXPECT_EQ(as_text(*log->fetch("checkpoint")), second.text());
  { auto dead = *std::move(log); }
  EXPECT_EQ(as_text(*reopened(here / "log")->fetch("checkpoint")), second.text());
}

/// The states that a crash may leave, in the order that an append makes them: the old head with any
/// part of the tail, with any part of the next head beside it; then the new head.
class LogCrash : public testing::Test {
 protected:
  void SetUp() override {
    {
      auto log = log_file::create(here_ / "old", log_signer());
      ASSERT_TRUE(log->append(batch(1, 3)));
      ASSERT_TRUE(log->publish(log->head()));
    }
    copy_state(here_ / "old", here_ / "new");
    auto log = reopened(here_ / "new");
    ASSERT_TRUE(log->append(batch(4, 3)));
  }
  bytes old_file(const char* name) const { return file_bytes(here_ / "old" / name); }
  bytes new_file(const char* name) const { return file_bytes(here_ / "new" / name); }

  /// Opens at that size and goes on with other entries than were under way.
  void expect_goes_on(uint64_t size) {
    auto log = reopened(here_ / "now");
    ASSERT_TRUE(log) << log.why().text;
    ASSERT_EQ(log->head().head.size, size);
    const uint32_t next = uint32_t(size) + 1;
    ASSERT_TRUE(log->append({{sample(log_kind::roster, next, "after the crash")}}));
    { auto dead = *std::move(log); }
    auto again = reopened(here_ / "now");
    ASSERT_TRUE(again) << again.why().text;
    ASSERT_EQ(again->head().head.size, size + 1);
    ASSERT_EQ(*again->entry(size), sample(log_kind::roster, next, "after the crash"));
  }

  scratch here_;
};

TEST_F(LogCrash, ATornTailIsNoPartOfTheLog) {
  const bytes before = old_file("entries"), after = new_file("entries");
  ASSERT_GT(after.size(), before.size());
  for (size_t size = before.size(); size <= after.size(); ++size) {
    SCOPED_TRACE(size);
    copy_state(here_ / "old", here_ / "now");
    put_file(here_ / "now" / "entries", bytes_view(after).first(size));
    expect_goes_on(3);
    // Blocks may reach the disk in any order: a hole of zeroes, then bytes.
    copy_state(here_ / "old", here_ / "now");
    bytes holed = after;
    std::fill(holed.begin() + long(before.size()), holed.begin() + long(size), std::byte{});
    put_file(here_ / "now" / "entries", holed);
    expect_goes_on(3);
  }
}

TEST_F(LogCrash, ATornHeadIsNotRead) {
  const bytes next = new_file("head");
  for (size_t size = 0; size <= next.size(); ++size) {
    SCOPED_TRACE(size);
    copy_state(here_ / "old", here_ / "now");
    put_file(here_ / "now" / "entries", new_file("entries"));
    put_file(here_ / "now" / "head.partial", bytes_view(next).first(size));
    expect_goes_on(3);
  }
  copy_state(here_ / "new", here_ / "now");
  expect_goes_on(6);
}

TEST_F(LogCrash, EntriesThatASignedHeadCountsMustBeThere) {
  const bytes after = new_file("entries");
  for (size_t size = 0; size < after.size(); ++size) {
    copy_state(here_ / "new", here_ / "now");
    put_file(here_ / "now" / "entries", bytes_view(after).first(size));
    EXPECT_FALSE(reopened(here_ / "now")) << size;
    put_file(here_ / "now" / "entries", flipped(after, size));
    EXPECT_FALSE(reopened(here_ / "now")) << size;
  }
  copy_state(here_ / "new", here_ / "now");
  EXPECT_TRUE(reopened(here_ / "now"));
}

TEST_F(LogCrash, AHeadThatIsGoneOrAlteredIsNotReplaced) {
  copy_state(here_ / "new", here_ / "now");
  fs::remove(here_ / "now" / "head");
  EXPECT_FALSE(reopened(here_ / "now"));
  EXPECT_TRUE(refused(log_file::create(here_ / "now", log_signer()), (here_ / "now").string()));
  const bytes head = new_file("head");
  for (size_t at = 0; at < head.size(); ++at) {
    copy_state(here_ / "new", here_ / "now");
    put_file(here_ / "now" / "head", flipped(head, at));
    EXPECT_FALSE(reopened(here_ / "now")) << at;
  }
  copy_state(here_ / "new", here_ / "now");
  EXPECT_FALSE(log_file::open(here_ / "now", signer("log.test/1", note_algorithm::ed25519, 2)));
}

/// What readers had must be in the log: entries brought back from an old copy are not.
TEST_F(LogCrash, ALogBehindItsCheckpointIsRefused) {
  copy_state(here_ / "new", here_ / "now");
  {
    auto log = reopened(here_ / "now");
    ASSERT_TRUE(log->publish(log->head()));
  }
  put_file(here_ / "now" / "head", old_file("head"));
  EXPECT_FALSE(reopened(here_ / "now"));
}

/// Appends until it is killed, and says each size when it is durable.
[[noreturn]] void append_forever(const fs::path& folder, int told) {
  auto log = reopened(folder);
  if (!log) ::_exit(1);
  for (;;) {
    const uint32_t next = log->last_epoch(log_kind::roster).value_or(0) + 1;
    auto head = log->append(batch(next, 1 + next % 3));
    if (!head || !log->publish(*head)) ::_exit(2);
    if (::write(told, &head->head.size, sizeof head->head.size) < 0) ::_exit(3);
  }
}

TEST(LogKill, AKilledWritersLogOpensWithAllThatItTold) {
  scratch here;
  ASSERT_TRUE(log_file::create(here / "log", log_signer()));
  std::mt19937 random(1);
  for (int round = 0; round < 12; ++round) {
    int told[2];
    ASSERT_EQ(::pipe(told), 0);
    const pid_t child = ::fork();
    if (child == 0) append_forever(here / "log", told[1]);
    ::close(told[1]);
    uint64_t size = 0, last = 0;
    for (uint32_t heads = 1 + random() % 5; heads > 0; --heads)
      if (::read(told[0], &size, sizeof size) == sizeof size) last = size;
    ::usleep(random() % 3000);
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    while (::read(told[0], &size, sizeof size) == sizeof size) last = size;
    ::close(told[0]);
    EXPECT_TRUE(WIFSIGNALED(status));
    auto log = reopened(here / "log");
    ASSERT_TRUE(log) << log.why().text;
    EXPECT_GE(log->head().head.size, last);
    EXPECT_GT(last, 0u);
  }
}

}  // namespace
}  // namespace lethe

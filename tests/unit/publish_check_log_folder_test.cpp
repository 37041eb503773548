// What `lethe log verify` checks: each kind of damage is refused by its own line.
#include "runtime/publish/check_log_folder.hpp"

#include "runtime/base/hex.hpp"
#include "runtime/base/unix_time.hpp"
#include "runtime/crypto/ohttp_config.hpp"
#include "runtime/publish/entry_facts.hpp"
#include "runtime/publish/publisher.hpp"
#include "runtime/token/token_issuer.hpp"
#include "tests/unit/log_samples.hpp"

namespace lethe {
namespace {

using namespace test;

class LogFolder : public testing::Test {
 protected:
  void SetUp() override {
    auto made = publisher::open(
        {.folder = folder(), .log = "origin", .origin = "origin", .issuer = "issuer"});
    ASSERT_TRUE(made) << made.why().text;
    from_ = *std::move(made);
    static const token_directory directory = [] {
      token_issuer issuer;
      EXPECT_TRUE(issuer.add(issuer_key::make(), 1));
      return issuer.directory("/token-request", 2);
    }();
    ASSERT_TRUE(from_->issuer_keys(directory, unix_s()));
    ohttp_config key{.key_id = 7, .pk = random_bytes(32, 1), .algorithms = {{}}};
    ASSERT_TRUE(from_->gateway_keys(write_ohttp_keys({&key, 1}), unix_s()));
    for (uint32_t n : {1, 2}) {
      published_node node{node_key::make()->published(), 4, "model"};
      ASSERT_TRUE(from_->roster(n, {&node, 1}, unix_s()));
    }
  }
  fs::path folder() const { return here_ / "gateway"; }
  note_trust trust() const {
    const auto& [log, witness] = from_->note_keys();
    return *note_trust::make(log, {witness}, 1);
  }
  log_checks check() const { return check_log_folder(*published_folder::find(folder()), trust()); }
  ::testing::AssertionResult wrong(std::string_view words) const {
    auto checks = check();
    if (!checks.wrong) return ::testing::AssertionFailure() << "was found good";
    if (checks.wrong->text.find(words) == std::string::npos)
      return ::testing::AssertionFailure() << checks.wrong->text;
    return ::testing::AssertionSuccess();
  }
  void flip(const fs::path& path, size_t at) {
    auto b = file_bytes(path);
    b.at(at) ^= std::byte{1};
    put_file(path, b);
  }
  size_t entries_size() const { return fs::file_size(folder() / "log/entries"); }

  scratch here_;
  std::unique_ptr<publisher> from_;
};

TEST_F(LogFolder, IsFoundGoodAlsoWhileItsWriterHasIt) {
  auto checks = check();
  ASSERT_FALSE(checks.wrong) << checks.wrong->text;
  std::vector<std::string> names;
  for (const auto& line : checks.good) names.push_back(line.what);
  EXPECT_EQ(names, (std::vector<std::string>{"head", "entries", "checkpoint", "epochs", "contents",
                                             "rosters"}));
  EXPECT_EQ(checks.good.back().found, "2 of 2 are here, and each makes its logged root");
  EXPECT_NE(checks.good[2].found.find("cosigned by origin-witness (1 of 1 witnesses, 1 must)"),
            std::string::npos);
  EXPECT_FALSE(check_log_folder(*published_folder::find(folder() / "log"), trust()).wrong);
  EXPECT_FALSE(check_log_folder(*published_folder::find(folder() / "log/"), trust()).wrong);
  EXPECT_FALSE(published_folder::find(here_.path()));
}

TEST_F(LogFolder, EveryByteOfEveryEntryCounts) {
  const size_t size = entries_size();
  for (size_t at = 0; at < size; at += at < 64 ? 1 : 97) {
    flip(folder() / "log/entries", at);
    EXPECT_TRUE(wrong("log/entries: ")) << at;
    flip(folder() / "log/entries", at);
  }
  EXPECT_FALSE(check().wrong);
}

TEST_F(LogFolder, WhatWasRemovedIsMissed) {
  auto bytes = file_bytes(folder() / "log/entries");
  const size_t first = 2 + 6 + 32;
  put_file(folder() / "log/entries", bytes_view(bytes).subspan(first));
  EXPECT_TRUE(wrong("5 whole entries are there, the head counts 6: what is missing was removed"));
  for (size_t size = 0; size < bytes.size(); size += 41) {
    put_file(folder() / "log/entries", bytes_view(bytes).first(size));
    EXPECT_TRUE(wrong("whole entries are there")) << size;
  }
  bytes.push_back(std::byte{1});  // as a crash leaves it: no part of the log
  put_file(folder() / "log/entries", bytes);
  EXPECT_FALSE(check().wrong);
}

TEST_F(LogFolder, HeadsMustBeSignedByWhomTheReaderBelieves) {
  auto other = log_signer().key();
  auto checks = check_log_folder(*published_folder::find(folder()),
                                 *note_trust::make(other, {from_->note_keys().witness}, 1));
  EXPECT_NE(checks.wrong->text.find("another log's head"), std::string::npos);
  checks =
      check_log_folder(*published_folder::find(folder()),
                       *note_trust::make(from_->note_keys().log, {witness_signer(0).key()}, 1));
  EXPECT_NE(checks.wrong->text.find("log/checkpoint: log: no quorum"), std::string::npos);
  flip(folder() / "log/head", file_bytes(folder() / "log/head").size() - 20);
  EXPECT_TRUE(wrong("log/head: "));
  fs::remove(folder() / "log/head");
  EXPECT_FALSE(published_folder::find(folder()));
}

TEST_F(LogFolder, ACheckpointFromElsewhereOrNoneIsRefused) {
  const auto kept = file_bytes(folder() / "log/checkpoint");
  fs::remove(folder() / "log/checkpoint");
  EXPECT_TRUE(wrong("no head was ever published"));
  put_file(folder() / "log/checkpoint", kept);
  // The log goes back, what was published does not.
  fs::copy(folder(), here_ / "old", fs::copy_options::recursive);
  published_node node{node_key::make()->published(), 4, "model"};
  ASSERT_TRUE(from_->roster(3, {&node, 1}, unix_s()));
  for (const char* file : {"head", "entries"})
    fs::copy(here_ / "old" / "log" / file, folder() / "log" / file,
             fs::copy_options::overwrite_existing);
  EXPECT_TRUE(wrong("has 7 entries, the log only 6: it is an old copy"));
}

TEST_F(LogFolder, EachRosterMustMakeItsLoggedRoot) {
  const auto file = folder() / "rosters/0000000001";
  for (size_t at = 0; at < fs::file_size(file); at += 13) {
    flip(file, at);
    EXPECT_TRUE(wrong("rosters/0000000001: ")) << at;
    flip(file, at);
  }
  const auto bytes = file_bytes(file);
  fs::remove(file);
  EXPECT_TRUE(wrong("roster 1 is missing: each is kept for 90 days"));
  put_file(file, bytes);
  put_file(folder() / "rosters/0000000009", bytes);
  EXPECT_TRUE(wrong("the log has no roster 9"));
  fs::rename(folder() / "rosters/0000000009", folder() / "rosters/0000000003");
  EXPECT_FALSE(check().wrong) << "it lies there before it is logged";
  fs::remove_all(folder() / "rosters");
  EXPECT_EQ(check().good.back().found, "none lie beside this log: not checked");
}

/// A log that its own key signs, and a witness cosigned: what only its entries show.
class SignedLog : public testing::Test {
 protected:
  log_checks check(const std::vector<log_entry>& entries) {
    fs::create_directories(here_ / "log");
    free_log log;
    bytes all;
    for (const auto& e : entries) {
      log.add(e);
      const auto b = e.to_bytes();
      all.push_back(std::byte(uint8_t(b.size() >> 8)));
      all.push_back(std::byte(uint8_t(b.size())));
      all.insert(all.end(), b.begin(), b.end());
    }
    put_file(here_ / "log/entries", all);
    for (const char* file : {"log/head", "log/checkpoint"})
      put_file(here_ / file, as_bytes(log.note(1, t0).text()));
    return check_log_folder(*published_folder::find(here_ / "log"), trust(1, 1));
  }
  std::string why(const std::vector<log_entry>& entries) {
    auto checks = check(entries);
    return checks.wrong ? checks.wrong->text.substr(checks.wrong->text.find("entries: ")) : "";
  }
  scratch here_;
};

TEST_F(SignedLog, ADuplicateAGapAndNonsenseAreRefused) {
  const auto one = sample(log_kind::release, 1), two = sample(log_kind::release, 2),
             three = sample(log_kind::release, 3);
  EXPECT_EQ(why({one, two, three}), "");
  EXPECT_EQ(why({one, two, two}), "entries: log: duplicate: entry 2 is release 2, after 2");
  EXPECT_EQ(why({one, three}), "entries: log: gap: entry 1 is release 3, after 1");
  EXPECT_TRUE(
      why({one, sample(log_kind::policy, 1, "{}")}).starts_with("entries: entry 1, policy 1: "));
  EXPECT_TRUE(why({sample(log_kind::roster, 4, "r")}).starts_with("entries: entry 0, roster 4: "));
}

TEST(EntryFacts, SayWhatAnEntryHolds) {
  EXPECT_EQ(text_of(*facts_of(sample(log_kind::release, 1, "\x01\xff"))), "program 01ff");
  auto roster = roster_summary{1'800'000'000, {}, 3, 300}.to_entry(5);
  EXPECT_EQ(text_of(*facts_of(roster)),
            "nodes 3, capacity 300, from 2027-01-15 08:00:00 UTC, root " + std::string(64, '0'));
  auto policy = text_of(*facts_of(sample_policy().to_entry(1)));
  EXPECT_TRUE(policy.starts_with("name embedded, candidates 1, ")) << policy;
  EXPECT_TRUE(policy.ends_with("class ember-nano/cpu 100, class ember/gpu 4000")) << policy;
  const issuer_key made = issuer_key::make();
  const token_key& key = made.published();
  token_directory keys{"/issue", {{.key = key.spki(), .not_before_s = 1'800'000'000}}};
  auto issuer = [&] {
    return text_of(*facts_of(sample(log_kind::issuer_keys, 1, write_directory(keys))));
  };
  EXPECT_EQ(issuer(), "key 1 " + to_hex(key.id()) + " from 2027-01-15 08:00:00 UTC");
  keys.keys[0].buyers = 0;
  EXPECT_TRUE(issuer().ends_with(" UTC, bought by fewer than ten accounts")) << issuer();
  keys.keys[0].buyers = 20;
  EXPECT_TRUE(issuer().ends_with(" UTC, bought by 20 accounts or more")) << issuer();
  EXPECT_FALSE(facts_of(sample(log_kind::ohttp_keys, 1)));
  EXPECT_FALSE(facts_of(sample(log_kind::issuer_keys, 1)));
}

}  // namespace
}  // namespace lethe

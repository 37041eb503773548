#include "runtime/log/log_reader.hpp"

#include "tests/unit/log_samples.hpp"

namespace lethe {
namespace {

using namespace test;

/// Two of three witnesses; a roster every ten minutes.
log_rules rules(uint32_t first_entries = 1024) {
  return {.trust = trust(3, 2), .first_entries = first_entries};
}

/// One of each kind, then rosters up to that epoch, the last of which begins at t0.
free_log full_log(uint32_t rosters) {
  free_log log;
  for (log_kind kind : log_kinds)
    if (kind != log_kind::roster) log.add(sample(kind, 1, name_of(kind)));
  for (uint32_t e = 1; e <= rosters; ++e) log.add(roster_sample(e, t0 - 600 * (rosters - e)));
  return log;
}

/// Reads it as its witnesses see it at t0.
result<void> read(log_reader& reader, const free_log& log) {
  return reader.read(log.serve(log.note(2, t0)), t0);
}

/// A reader that has seen all of this log.
log_reader seen(const free_log& log) {
  log_reader reader(rules());
  auto ok = read(reader, log);
  EXPECT_TRUE(ok) << ok.why().text;
  return reader;
}

TEST(LogReader, HandsOutWhatIsCurrentAndWhatIsNew) {
  free_log log = full_log(3);
  log_reader reader = seen(log);
  EXPECT_EQ(reader.news().size(), 7u);
  EXPECT_EQ(reader.current(log_kind::roster)->epoch, 3u);
  EXPECT_EQ(*reader.current(log_kind::policy), sample(log_kind::policy, 1, "policy"));
  log.add(roster_sample(4, t0));
  ASSERT_TRUE(read(reader, log));
  ASSERT_EQ(reader.news().size(), 1u);
  EXPECT_EQ(reader.news()[0].index, 7u);
  EXPECT_EQ(reader.current(log_kind::roster)->epoch, 4u);
  ASSERT_TRUE(read(reader, log));
  EXPECT_TRUE(reader.news().empty());
  EXPECT_EQ(reader.current(log_kind::roster)->epoch, 4u);
}

TEST(LogReader, FollowsALogThroughAllSizes) {
  free_log log = full_log(1);
  log_reader reader = seen(log);
  for (uint32_t step = 1, epoch = 1; epoch < 600; step = step % 41 + 1) {
    for (uint32_t i = 0; i < step; ++i) log.add(roster_sample(++epoch, t0));
    auto ok = read(reader, log);
    ASSERT_TRUE(ok) << ok.why().text << " at " << log.entries.size();
    ASSERT_EQ(reader.memory()->tree.root(), log.tree().root());
    ASSERT_EQ(reader.current(log_kind::roster)->epoch, epoch);
  }
}

TEST(LogReader, MemoryOutlivesTheProcess) {
  free_log log = full_log(5);
  const bytes kept = seen(log).memory()->to_bytes();
  for (size_t size = 0; size < kept.size(); ++size)
    EXPECT_FALSE(log_memory::from_bytes(bytes_view(kept).first(size))) << size;
  auto memory = log_memory::from_bytes(kept);
  ASSERT_TRUE(memory) << memory.why().text;
  EXPECT_EQ(memory->to_bytes(), kept);
  log_reader reader(rules(), *std::move(memory));
  EXPECT_EQ(reader.current(log_kind::roster)->epoch, 5u);
  log.add(roster_sample(6, t0));
  EXPECT_TRUE(read(reader, log));
}

TEST(LogReader, AFirstTimeReaderTakesTheWindowAndWhatItNeeds) {
  const free_log log = full_log(900);  // one of each other kind, at the very front
  log_reader whole(rules(10));
  ASSERT_TRUE(read(whole, log));
  EXPECT_EQ(whole.news().size(), 904u);
  auto rosters = rules(10);
  rosters.needed = {log_kind::roster};
  log_reader part(rosters);
  ASSERT_TRUE(read(part, log));
  EXPECT_EQ(part.news().size(), 10u);
  EXPECT_EQ(part.news()[0].index, 894u);
  EXPECT_EQ(part.memory()->tree.root(), log.tree().root());
}

TEST(LogReader, RefusesALogWithoutAKindThatItNeeds) {
  free_log log;
  log.add(roster_sample(1, t0));
  log_reader reader(rules());
  EXPECT_TRUE(refused(read(reader, log), "log: missing release"));
  EXPECT_FALSE(reader.memory());
}

TEST(LogReader, RefusesABadSignature) {
  const free_log log = full_log(2);
  signed_head note = log.note(2, t0);
  note.signatures[0].bytes[9] ^= std::byte{1};
  log_reader reader(rules());
  EXPECT_TRUE(refused(reader.read(log.serve(note), t0), "log: bad signature"));
}

TEST(LogReader, RefusesAHeadWithoutQuorum) {
  const free_log log = full_log(2);
  log_reader reader(rules());
  EXPECT_TRUE(refused(reader.read(log.serve(log.note(1, t0)), t0), "log: no quorum"));
  EXPECT_TRUE(reader.read(log.serve(log.note(2, t0)), t0));
}

TEST(LogReader, RefusesTwoHeadsOfOneSizeAndKeepsThem) {
  free_log log = full_log(3), other = full_log(2);
  other.add(roster_sample(3, t0 - 1));
  log_reader reader = seen(log);
  EXPECT_TRUE(refused(read(reader, other), "log: fork"));
  ASSERT_TRUE(reader.evidence());
  EXPECT_EQ(reader.evidence()->what, "fork");
  EXPECT_EQ(reader.evidence()->earlier.head, log.head());
  EXPECT_EQ(reader.evidence()->later.head, other.head());
  EXPECT_NE(reader.evidence()->text().find(log.head().text()), std::string::npos);
  EXPECT_TRUE(refused(read(reader, log), "log: stopped"));
}

TEST(LogReader, RefusesALongerForkAndKeepsItsProof) {
  for (uint32_t agree : {1u, 3u, 4u, 12u})  // the old head's size is, or is not, a power of two
    for (uint32_t more : {1u, 2u, 300u}) {
      free_log log = full_log(agree), other = full_log(agree - 1);
      other.add(roster_sample(agree, t0 + 1));
      for (uint32_t i = 1; i <= more; ++i) other.add(roster_sample(agree + i, t0));
      log_reader reader = seen(log);
      EXPECT_TRUE(refused(read(reader, other), "log: fork"));
      ASSERT_TRUE(reader.evidence());
      const log_evidence& kept = *reader.evidence();
      EXPECT_NE(kept.continued, kept.earlier.head.root);
      EXPECT_TRUE(verify_head(kept.earlier, rules().trust.log));
      EXPECT_TRUE(verify_head(kept.later, rules().trust.log));
      EXPECT_TRUE(verify_consistency(kept.earlier.head.size, kept.later.head.size, kept.consistency,
                                     kept.continued, kept.later.head.root));
    }
}

/// Somebody on the way can spoil what is served, but not make the log look guilty.
TEST(LogReader, RefusesWhatWasAlteredOnTheWayWithoutEvidence) {
  free_log log = full_log(3);
  const log_reader before = seen(log);
  log.add(roster_sample(4, t0));
  log.add(roster_sample(5, t0));
  const auto good = log.serve(log.note(2, t0));
  for (const char* path : {"tile/entries/000.p/9", "tile/0/000.p/9"}) {
    const bytes right = *good(path);
    for (size_t at = 0; at < right.size(); at += 3) {
      free_log spoiled = log;
      spoiled.spoiled[path] = flipped(right, at);
      log_reader reader = before;
      auto ok = read(reader, spoiled);
      // Of entries that were read before, and of tiles while all is well, nothing is used.
      EXPECT_TRUE(ok || ok.why().text.starts_with("log: altered")) << ok.why().text;
      EXPECT_FALSE(reader.evidence());
      const bytes bundle = *good("tile/entries/000.p/9");
      spoiled.spoiled["tile/entries/000.p/9"] = flipped(bundle, bundle.size() - 1);
      reader = before;
      EXPECT_TRUE(refused(read(reader, spoiled), "log: altered"));
      EXPECT_FALSE(reader.evidence());
    }
  }
  for (size_t size : {size_t{0}, size_t{1}, size_t{100}}) {
    free_log cut = log;
    cut.spoiled["tile/entries/000.p/9"] = bytes(size);
    log_reader reader = before;
    EXPECT_TRUE(refused(read(reader, cut), "log: altered"));
  }
}

TEST(LogReader, AFirstTimeReaderBelievesNoTilesButThoseOfTheHead) {
  const free_log log = full_log(600);
  auto some = rules(10);
  some.needed = {log_kind::roster};
  const auto good = log.serve(log.note(2, t0));
  for (std::string path : {"tile/1/000.p/2", "tile/0/002.p/92", "tile/entries/002.p/92"}) {
    free_log spoiled = log;
    const bytes b = *good(path);
    spoiled.spoiled[path] = flipped(b, path.find("entries") == path.npos ? 8 : b.size() - 40);
    log_reader reader(some);
    EXPECT_TRUE(refused(read(reader, spoiled), "log: ")) << path;
    EXPECT_FALSE(reader.memory());
  }
}

TEST(LogReader, RefusesALogThatShrank) {
  log_reader reader = seen(full_log(5));
  EXPECT_TRUE(refused(read(reader, full_log(4)), "log: shrank"));
  EXPECT_FALSE(reader.evidence());  // an old mirror would do the same
}

TEST(LogReader, RefusesAStaleHeadAndAWrongClock) {
  const free_log log = full_log(2);
  auto at = [&](uint64_t now_s) {
    log_reader reader(rules());
    return reader.read(log.serve(log.note(2, t0)), now_s);
  };
  EXPECT_TRUE(at(t0 + 120));
  EXPECT_TRUE(at(t0 - 120));
  EXPECT_TRUE(refused(at(t0 + 121), "log: stale: "));
  EXPECT_TRUE(refused(at(t0 - 121), "log: clock: "));
}

TEST(LogReader, TheMedianIsNotMovedByOneWitness) {
  const std::vector<uint64_t> three = {5, t0, t0 + 9};
  EXPECT_EQ(*check_age(three, t0), t0);
  EXPECT_EQ(*check_age({}, t0), t0);
  const std::vector<uint64_t> late = {t0, UINT64_MAX - 1, UINT64_MAX};
  EXPECT_FALSE(check_age(late, t0));
}

TEST(LogReader, RefusesAStaleRoster) {
  const free_log log = full_log(2);
  auto at = [&](uint64_t now_s) {
    log_reader reader(rules());
    return reader.read(log.serve(log.note(2, now_s)), now_s);
  };
  EXPECT_TRUE(at(t0 + 1200));
  EXPECT_TRUE(refused(at(t0 + 1201), "log: stale roster: epoch 2"));
}

TEST(LogReader, RefusesAGap) {
  free_log log = full_log(2);
  log_reader reader = seen(log);
  log.add(roster_sample(4, t0));
  EXPECT_TRUE(refused(read(reader, log), "log: gap: roster 4 follows 2"));
  log_reader first(rules());
  EXPECT_TRUE(refused(read(first, log), "log: gap"));
  EXPECT_EQ(reader.current(log_kind::roster)->epoch, 2u);
}

void expect_proven_duplicate(const log_reader& reader, const free_log& log, log_kind kind) {
  ASSERT_TRUE(reader.evidence());
  const log_evidence& kept = *reader.evidence();
  EXPECT_EQ(kept.what, "duplicate");
  ASSERT_EQ(kept.entries.size(), 2u);
  EXPECT_LT(kept.entries[0].index, kept.entries[1].index);
  for (const auto& e : kept.entries) {
    EXPECT_EQ(log_entry::from_bytes(e.bytes)->kind, kind);
    EXPECT_TRUE(verify_inclusion(leaf_hash(e.bytes), e.index, log.entries.size(), e.inclusion,
                                 kept.later.head.root));
  }
}

TEST(LogReader, RefusesTwoEntriesOfOneEpochAndKeepsBoth) {
  free_log log = full_log(2);
  const log_reader before = seen(log);
  log.add(roster_sample(3, t0));
  log.add(sample(log_kind::policy, 1, "another one"));  // of an epoch that was read before
  log_reader reader = before;
  EXPECT_TRUE(
      refused(read(reader, log), "log: duplicate: policy 1, entry 7, comes after 1, entry 3"));
  expect_proven_duplicate(reader, log, log_kind::policy);
  EXPECT_TRUE(refused(read(reader, full_log(3)), "log: stopped"));
  log_reader first(rules());
  EXPECT_TRUE(refused(read(first, log), "log: duplicate: policy 1"));
  expect_proven_duplicate(first, log, log_kind::policy);
}

TEST(LogReader, WhoServesTilesBadlyHidesNoDuplicate) {
  free_log log = full_log(2);
  log.add(sample(log_kind::policy, 1, "another one"));
  log.spoiled["tile/0/000.p/7"] = bytes(7 * 32);
  log_reader reader(rules());
  EXPECT_TRUE(refused(read(reader, log), "log: duplicate: policy 1"));
  ASSERT_TRUE(reader.evidence());
  EXPECT_TRUE(reader.evidence()->entries[1].inclusion.empty());
}

TEST(LogReader, RefusesWhatIsServedCutAtAnyByte) {
  free_log log = full_log(2);
  const signed_head note = log.note(2, t0);
  const auto serve = log.serve(note);
  for (const char* path : {"checkpoint", "tile/entries/000.p/6"}) {
    const bytes whole = *serve(path);
    for (size_t size = 0; size <= whole.size() + 1; ++size) {
      log.spoiled[path] = whole;
      log.spoiled[path].resize(size);
      log_reader reader(rules());
      auto how = reader.read(log.serve(note), t0);
      EXPECT_EQ(bool(how), size == whole.size()) << path << " of " << size;
      EXPECT_EQ(reader.memory().has_value(), size == whole.size());
      EXPECT_FALSE(reader.evidence());
    }
    log.spoiled.clear();
  }
}

TEST(LogReader, NeedsEveryEntryToSeeADuplicate) {
  free_log log = full_log(300);
  log_reader reader = seen(log);
  log.add(roster_sample(301, t0));
  log.add(roster_sample(301, t0 + 1));  // both before the newest
  log.add(roster_sample(302, t0));
  EXPECT_TRUE(refused(read(reader, log), "log: duplicate: roster 301"));
  expect_proven_duplicate(reader, log, log_kind::roster);
}

TEST(LogReader, EntriesHaveABound) {
  auto claims = [](uint64_t size) {
    signed_head note{{"log.test/1", size, {}}, {}};
    note.signatures.push_back(sign_head(log_signer(), note.head));
    for (uint32_t w : {0, 1})
      note.signatures.push_back(cosign_head(witness_signer(w), note.head, t0));
    log_reader reader(rules());
    auto fetch = [&](std::string_view path) -> result<bytes> {
      return path == "checkpoint" ? result(text_bytes(note.text())) : fail("404");
    };
    return reader.read(fetch, t0);
  };
  EXPECT_TRUE(refused(claims(limits::log_entries_max), "log: missing tile/entries/"));
  EXPECT_TRUE(refused(claims(limits::log_entries_max + 1), "log: more than 16777216 entries"));
  EXPECT_TRUE(refused(claims(UINT64_MAX), "log: more than 16777216 entries"));
}

TEST(LogReader, SaysWhatItCouldNotGet) {
  const free_log log = full_log(2);
  const auto good = log.serve(log.note(2, t0));
  for (std::string_view gone : {"checkpoint", "tile/entries/000.p/6"}) {
    log_reader reader(rules());
    auto fetch = [&](std::string_view path) -> result<bytes> {
      return path == gone ? result<bytes>(fail("404")) : good(path);
    };
    EXPECT_TRUE(refused(reader.read(fetch, t0), "log: missing " + std::string(gone) + ": 404"));
  }
}

/// All together: a log in a folder, witnesses, a reader.
TEST(LogReader, ReadsWhatALogFilePublishes) {
  scratch here;
  auto log = log_file::create(here / "log", log_signer());
  std::vector<witness> witnesses;
  for (uint32_t n = 0; n < 2; ++n)
    witnesses.push_back(*witness::open(here / ("w" + std::to_string(n)).c_str(), witness_signer(n),
                                       {log_signer().key()}));
  log_reader reader(rules());
  for (uint32_t epoch = 1; epoch <= 20; ++epoch) {
    std::vector<log_entry> next = {roster_sample(epoch, t0)};
    if (epoch == 1)
      for (log_kind kind : log_kinds)
        if (kind != log_kind::roster) next.push_back(sample(kind, 1));
    signed_head note = *log->append(next);
    for (witness& w : witnesses) {
      const uint64_t old = w.last("log.test/1")->size;
      const auto answer =
          w.add_checkpoint(witness_ask{old, log->consistency(old), log->head()}.text(), t0);
      ASSERT_EQ(answer.status, 200) << answer.body;
      note.signatures.push_back(parse_signatures(answer.body)->at(0));
    }
    ASSERT_TRUE(log->publish(note));
    auto ok = reader.read([&](std::string_view path) { return log->fetch(path); }, t0);
    ASSERT_TRUE(ok) << ok.why().text;
    EXPECT_EQ(reader.current(log_kind::roster)->epoch, epoch);
  }
}

}  // namespace
}  // namespace lethe

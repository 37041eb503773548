#include "runtime/log/witness.hpp"

#include "runtime/log/log_limits.hpp"
#include "tests/unit/log_samples.hpp"

namespace lethe {
namespace {

using namespace test;

free_log log_of(uint32_t entries, std::string_view payload = "p") {
  free_log log;
  for (uint32_t i = 1; i <= entries; ++i) log.add(sample(log_kind::release, i, payload));
  return log;
}

std::string ask(const free_log& log, uint64_t old_size) {
  const merkle_tree tree = log.tree();
  return witness_ask{old_size, *consistency_proof(old_size, tree.size(), tree.source()),
                     log.note(0, 0)}
      .text();
}

class Witness : public testing::Test {
 protected:
  result<witness> open() {
    return witness::open(here_ / "w", witness_signer(0), {log_signer().key()});
  }
  scratch here_;
};

TEST_F(Witness, CosignsAHistoryThatGrows) {
  auto w = open();
  ASSERT_TRUE(w) << w.why().text;
  uint64_t old = 0;
  for (uint32_t size : {1, 1, 4, 5, 9, 300}) {
    const auto answer = w->add_checkpoint(ask(log_of(size), old), t0 + size);
    ASSERT_EQ(answer.status, 200) << answer.body;
    signed_head note = log_of(size).note(0, 0);
    note.signatures.push_back(parse_signatures(answer.body)->at(0));
    EXPECT_EQ(*verify_head(note, trust(1, 1)), std::vector<uint64_t>{t0 + size});
    old = size;
  }
}

TEST_F(Witness, RefusesAnOldSizeThatIsNotItsOwn) {
  auto w = open();
  ASSERT_EQ(w->add_checkpoint(ask(log_of(5), 0), t0).status, 200);
  for (uint64_t old : {0, 4, 6}) {
    const auto answer = w->add_checkpoint(ask(log_of(8), old), t0);
    EXPECT_EQ(answer.status, 409) << old;
    EXPECT_EQ(answer.type, "text/x.tlog.size");
    EXPECT_EQ(answer.body, "5\n");
  }
  EXPECT_EQ(w->add_checkpoint(ask(log_of(4), 4), t0).status, 409);  // it shrank
  EXPECT_EQ(w->last("log.test/1")->size, 5u);
}

TEST_F(Witness, RefusesAFork) {
  auto w = open();
  ASSERT_EQ(w->add_checkpoint(ask(log_of(5), 0), t0).status, 200);
  EXPECT_EQ(w->add_checkpoint(ask(log_of(5, "other"), 5), t0).status, 409);
  EXPECT_EQ(w->add_checkpoint(ask(log_of(8, "other"), 5), t0).status, 422);
  auto padded = *witness_ask::parse(ask(log_of(8), 5));
  padded.proof.push_back(sha256({}));
  EXPECT_EQ(w->add_checkpoint(padded.text(), t0).status, 422);
  EXPECT_EQ(w->add_checkpoint(ask(log_of(8), 5), t0).status, 200);
}

TEST_F(Witness, RefusesWhatIsNotTheLogs) {
  auto w = open();
  auto unsigned_ask = *witness_ask::parse(ask(log_of(5), 0));
  unsigned_ask.note.signatures[0].bytes[3] ^= std::byte{1};
  EXPECT_EQ(w->add_checkpoint(unsigned_ask.text(), t0).status, 403);
  auto unknown = *witness_ask::parse(ask(log_of(5), 0));
  unknown.note.head.origin = "other.test";
  EXPECT_EQ(w->add_checkpoint(unknown.text(), t0).status, 404);
  auto backwards = *witness_ask::parse(ask(log_of(5), 0));
  backwards.old_size = 6;
  EXPECT_EQ(w->add_checkpoint(backwards.text(), t0).status, 400);
  EXPECT_EQ(w->last("log.test/1")->size, 0u);
}

TEST_F(Witness, RefusesABodyThatIsCutOrOdd) {
  auto w = open();
  ASSERT_EQ(w->add_checkpoint(ask(log_of(5), 0), t0).status, 200);
  const std::string good = ask(log_of(8), 5);
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_EQ(w->add_checkpoint(good.substr(0, size), t0).status, 400) << size;
  EXPECT_EQ(w->add_checkpoint("old 05" + good.substr(5), t0).status, 400);
  auto long_proof = *witness_ask::parse(good);
  long_proof.proof.resize(limits::log_proof_max);
  EXPECT_EQ(w->add_checkpoint(long_proof.text(), t0).status, 422);
  long_proof.proof.resize(limits::log_proof_max + 1);
  EXPECT_EQ(w->add_checkpoint(long_proof.text(), t0).status, 400);
}

TEST_F(Witness, RemembersAcrossACrash) {
  {
    auto w = open();
    ASSERT_EQ(w->add_checkpoint(ask(log_of(5), 0), t0).status, 200);
    EXPECT_FALSE(open());  // one process at a time
  }
  auto w = open();
  ASSERT_TRUE(w);
  EXPECT_EQ(w->last("log.test/1")->size, 5u);
  EXPECT_EQ(w->add_checkpoint(ask(log_of(8, "other"), 0), t0).status, 409);
  EXPECT_EQ(w->add_checkpoint(ask(log_of(8), 5), t0).status, 200);
}

/// What it cannot remember it must not have said.
TEST_F(Witness, DoesNotCosignWhatItCannotRemember) {
  auto w = open();
  fs::remove_all(here_ / "w");
  const auto answer = w->add_checkpoint(ask(log_of(5), 0), t0);
  EXPECT_EQ(answer.status, 500);
  EXPECT_EQ(w->last("log.test/1")->size, 0u);
}

TEST_F(Witness, ADamagedStateIsRefused) {
  {
    auto w = open();
    ASSERT_EQ(w->add_checkpoint(ask(log_of(5), 0), t0).status, 200);
  }
  for (const auto& file : fs::directory_iterator(here_ / "w"))
    if (file.path().extension() == ".head") put_file(file.path(), as_bytes("log.test/1\n"));
  EXPECT_FALSE(open());
  EXPECT_FALSE(witness::open(here_ / "v", log_signer(), {}));
}

}  // namespace
}  // namespace lethe

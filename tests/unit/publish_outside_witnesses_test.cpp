// Witnesses that others run: when a head waits for them, and what each answer leads to.
#include "runtime/publish/outside_witnesses.hpp"

#include "runtime/base/unix_time.hpp"
#include "tests/unit/log_samples.hpp"

namespace lethe {
namespace {

using namespace test;

constexpr uint64_t second = 1'000'000'000;

class OutsideWitnesses : public testing::Test {
 protected:
  void SetUp() override {
    from_ = open();
    asks_ = std::make_unique<outside_witnesses>(*from_, keys());
    for (uint32_t n : {0, 1}) open_witness(n);
  }
  std::unique_ptr<publisher> open() {
    auto made = publisher::open({.folder = here_ / "gateway",
                                 .log = "origin",
                                 .origin = "origin",
                                 .issuer = "issuer",
                                 .witnessed = true});
    EXPECT_TRUE(made) << made.why().text;
    return *std::move(made);
  }
  static std::vector<note_key> keys() { return {witness_signer(0).key(), witness_signer(1).key()}; }
  void open_witness(uint32_t n) {
    auto made = witness::open(here_ / ("w" + std::to_string(n)).c_str(), witness_signer(n),
                              {from_->note_keys().log});
    ASSERT_TRUE(made) << made.why().text;
    witnesses_[n].emplace(*std::move(made));
  }
  /// Carries every ask to its witness and the answer back, until nobody is to be asked.
  int carry(uint64_t now_ns, std::vector<size_t> down = {}) {
    int asked = 0;
    for (auto due = asks_->due(now_ns); !due.empty(); due = asks_->due(now_ns))
      for (auto& a : due) {
        ++asked;
        if (std::ranges::find(down, a.witness) != down.end())
          asks_->said(a.witness, fail("nobody listens"), now_ns);
        else
          asks_->said(a.witness, witnesses_[a.witness]->add_checkpoint(a.body, unix_s()), now_ns);
      }
    return asked;
  }
  /// Of the outside witnesses, those that signed what is published; -1: nothing is.
  int signed_by() const {
    auto bytes = from_->fetch("checkpoint");
    if (!bytes) return -1;
    auto note = *signed_head::parse(as_text(*bytes));
    auto all = keys();
    int n = 0;
    for (const auto& k : all)
      n += bool(verify_head(note, note_trust{from_->note_keys().log, {k}, 1}));
    EXPECT_TRUE(verify_head(note, *note_trust::make(from_->note_keys().log, all, 0)))
        << "no wrong word is passed on";
    return n;
  }
  uint64_t published_size() const {
    return signed_head::parse(as_text(*from_->fetch("checkpoint")))->head.size;
  }
  void log_more(const char* keys) { ASSERT_TRUE(from_->gateway_keys(as_bytes(keys), unix_s())); }

  scratch here_;
  std::unique_ptr<publisher> from_;
  std::unique_ptr<outside_witnesses> asks_;
  std::optional<witness> witnesses_[2];
};

TEST_F(OutsideWitnesses, AHeadIsPublishedWhenAllHaveSigned) {
  EXPECT_EQ(asks_->due(0).size(), 2u);
  EXPECT_TRUE(asks_->publish(0));
  EXPECT_EQ(signed_by(), -1) << "nobody has answered";
  EXPECT_TRUE(asks_->due(0).empty()) << "nobody is asked twice";
  asks_ = std::make_unique<outside_witnesses>(*from_, keys());
  EXPECT_EQ(carry(0), 2);
  ASSERT_TRUE(asks_->publish(0));
  EXPECT_EQ(signed_by(), 2);
  EXPECT_EQ(from_->cosignatures(), 3u);
  EXPECT_EQ(asks_->note(), "");
}

TEST_F(OutsideWitnesses, OneThatIsDownIsNotWaitedForAndIsTold) {
  carry(0, {1});
  ASSERT_TRUE(asks_->publish(0));
  EXPECT_EQ(signed_by(), 1);
  EXPECT_EQ(asks_->note(), "witness witness-1 is not reached: nobody listens");
  EXPECT_EQ(carry(outside_witnesses::again_ns - 1), 0) << "not at once";
  EXPECT_EQ(carry(outside_witnesses::again_ns), 1);
  ASSERT_TRUE(asks_->publish(outside_witnesses::again_ns));
  EXPECT_EQ(signed_by(), 2) << "it came later, and joins";
  EXPECT_EQ(asks_->note(), "");
}

TEST_F(OutsideWitnesses, OneThatIsSilentIsWaitedForNoLongerThanPatience) {
  auto due = asks_->due(0);
  asks_->said(0, witnesses_[0]->add_checkpoint(due[0].body, unix_s()), 0);
  ASSERT_TRUE(asks_->publish(outside_witnesses::patience_ns - 1));
  EXPECT_EQ(signed_by(), -1);
  ASSERT_TRUE(asks_->publish(outside_witnesses::patience_ns));
  EXPECT_EQ(signed_by(), 1);
  asks_->said(1, witnesses_[1]->add_checkpoint(due[1].body, unix_s()), 3 * second);
  ASSERT_TRUE(asks_->publish(3 * second));
  EXPECT_EQ(signed_by(), 2);
}

TEST_F(OutsideWitnesses, A409IsAskedAgainFromTheSizeThatItNames) {
  carry(0);
  log_more("more");
  carry(second);
  // As after a restart of the gateway: nothing is known of what they saw.
  asks_ = std::make_unique<outside_witnesses>(*from_, keys());
  EXPECT_EQ(carry(2 * second), 4);
  ASSERT_TRUE(asks_->publish(2 * second));
  EXPECT_EQ(signed_by(), 2);
}

TEST_F(OutsideWitnesses, AskedAnewForEachHeadAndEachCosigning) {
  carry(0);
  ASSERT_TRUE(asks_->publish(0));
  EXPECT_EQ(carry(second), 0);
  log_more("more");
  ASSERT_TRUE(asks_->publish(second));
  EXPECT_EQ(published_size(), 1u) << "the new head waits";
  EXPECT_EQ(carry(second), 2);
  ASSERT_TRUE(asks_->publish(second));
  EXPECT_EQ(published_size(), 2u);
  EXPECT_EQ(signed_by(), 2);
  ASSERT_TRUE(from_->recosign(unix_s()));
  EXPECT_EQ(carry(30 * second), 2);
}

TEST_F(OutsideWitnesses, AYoungWordOfTheSameHeadOutlivesARestartOfItsWitness) {
  carry(0);
  ASSERT_TRUE(asks_->publish(0));
  for (uint64_t at : {30 * second, 90 * second}) {
    ASSERT_TRUE(from_->recosign(unix_s() + at / second));
    carry(at, {1});
    ASSERT_TRUE(asks_->publish(at));
    EXPECT_EQ(signed_by(), at < outside_witnesses::word_ns ? 2 : 1);
  }
}

TEST_F(OutsideWitnesses, AFolderThatIsAnOldCopyIsRefusedAndSaidSo) {
  fs::copy(here_ / "gateway", here_ / "copy", fs::copy_options::recursive);
  carry(0);
  log_more("one");
  carry(0);
  log_more("two");
  carry(0);
  from_.reset();
  fs::remove_all(here_ / "gateway");
  fs::rename(here_ / "copy", here_ / "gateway");
  from_ = open();
  ASSERT_TRUE(from_->recosign(unix_s()));
  asks_ = std::make_unique<outside_witnesses>(*from_, keys());
  carry(0);
  EXPECT_NE(asks_->note().find("it saw 3 entries of this log, which has 1: the folder is an old"),
            std::string::npos)
      << asks_->note();
  ASSERT_TRUE(asks_->publish(0));
  EXPECT_EQ(signed_by(), 0);
  for (const char* other : {"other", "history"}) log_more(other);
  carry(second);
  EXPECT_NE(asks_->note().find("it saw another history"), std::string::npos) << "same size";
  log_more("longer");
  carry(2 * second);
  EXPECT_NE(asks_->note().find("it saw another history"), std::string::npos) << "larger";
  ASSERT_TRUE(asks_->publish(2 * second));
  EXPECT_EQ(signed_by(), 0);
}

TEST_F(OutsideWitnesses, AWrongWordIsNotPassedOn) {
  auto due = asks_->due(0);
  auto good = witnesses_[0]->add_checkpoint(due[0].body, unix_s());
  auto forged = parse_signatures(good.body)->front();
  forged.bytes[20] ^= std::byte{1};
  asks_->said(0, witness_answer{200, "", forged.line()}, 0);
  asks_->said(1, good, 0);  // another's
  EXPECT_EQ(asks_->note(),
            "witness witness-0 gives a wrong signature; witness witness-1 signs with another key "
            "than the file has");
  ASSERT_TRUE(asks_->publish(0));
  EXPECT_EQ(signed_by(), 0);
}

TEST_F(OutsideWitnesses, OddAnswersAreToldAndAskedAgainLater) {
  for (auto [status, body, says] : {std::tuple{409, "x\n", "answers 409"},
                                    {409, "0", "answers 409"},
                                    {409, "0\n", "another history"},
                                    {404, "", "does not know this log:"},
                                    {403, "", "another one of the same name"},
                                    {500, "", "answers 500"},
                                    {200, "hello", "no signature"}}) {
    asks_ = std::make_unique<outside_witnesses>(*from_, keys());
    asks_->due(0);
    asks_->said(0, witness_answer{uint16_t(status), "", body}, 0);
    EXPECT_NE(asks_->note().find(says), std::string::npos) << asks_->note();
    EXPECT_TRUE(asks_->due(0).empty());
  }
}

TEST_F(OutsideWitnesses, OneThatNamesASizeEachTimeIsNotAskedForEver) {
  log_more("one");
  log_more("two");
  int asked = 0;
  for (auto due = asks_->due(0); !due.empty(); due = asks_->due(0))
    for (auto& a : due) {
      ASSERT_LT(++asked, 10);
      asks_->said(a.witness, witness_answer{409, "", asked % 4 < 2 ? "1\n" : "2\n"}, 0);
    }
  EXPECT_EQ(asked, 4);
}

}  // namespace
}  // namespace lethe

// What a cluster says in public: logged, cosigned, and there again after a restart.
#include "runtime/publish/publisher.hpp"

#include <gtest/gtest.h>

#include "runtime/base/unix_time.hpp"
#include "runtime/log/log_reader.hpp"
#include "runtime/log/roster_policy.hpp"
#include "runtime/token/token_issuer.hpp"
#include "tests/e2e/command.hpp"

namespace lethe {
namespace {

std::vector<published_node> nodes(size_t count, uint32_t capacity = 4) {
  std::vector<published_node> all;
  for (size_t i = 0; i < count; ++i)
    all.push_back({node_key::make()->published(), capacity, "Some Model"});
  return all;
}

token_directory directory() {
  token_issuer issuer;
  EXPECT_TRUE(issuer.add(issuer_key::make(), 1));
  return issuer.directory("/token-request", 2);
}

class Publisher : public testing::Test {
 protected:
  result<std::unique_ptr<publisher>> open(const std::string& origin = "origin") {
    return publisher::open(
        {.folder = folder_ / "gateway", .log = origin, .origin = origin, .issuer = "issuer"});
  }
  /// A publisher whose first roster is out.
  std::unique_ptr<publisher> ready(size_t count = 2) {
    auto made = open();
    EXPECT_TRUE(made) << made.why().text;
    EXPECT_TRUE((*made)->issuer_keys(directory(), unix_s()));
    EXPECT_TRUE((*made)->gateway_keys(as_bytes("keys"), unix_s()));
    auto logged = (*made)->roster(1, nodes(count), unix_s());
    EXPECT_TRUE(logged) << logged.why().text;
    return *std::move(made);
  }
  static log_reader reader_of(const publisher& p) {
    const auto& [log, witness] = p.note_keys();
    return log_reader({.trust = *note_trust::make(log, {witness}, 1),
                       .needed = {log_kind::roster, log_kind::ohttp_keys, log_kind::issuer_keys,
                                  log_kind::policy}});
  }
  static result<void> read(log_reader& reader, const publisher& p) {
    return reader.read([&p](std::string_view path) { return p.fetch(path); }, unix_s());
  }

  scratch_folder folder_;
};

TEST_F(Publisher, AReaderBelievesLogRosterAndPolicy) {
  auto p = ready();
  auto reader = reader_of(*p);
  auto good = read(reader, *p);
  ASSERT_TRUE(good) << good.why().text;
  auto verified = verify_roster(*p->roster_bytes(1), *reader.current(log_kind::roster));
  ASSERT_TRUE(verified) << verified.why().text;
  EXPECT_EQ(verified->leaves.size(), 2u);
  auto policy = log_policy::from_entry(*reader.current(log_kind::policy));
  ASSERT_TRUE(policy);
  auto fits = check_roster(*verified, *policy);
  EXPECT_TRUE(fits) << fits.why().text;
  EXPECT_EQ(policy->token_challenge, p->challenge().to_bytes());
}

TEST_F(Publisher, GoesOnAfterARestart) {
  auto first = ready();
  auto reader = reader_of(*first);
  ASSERT_TRUE(read(reader, *first));
  auto keys = first->issuer();
  first.reset();
  auto again = open();
  ASSERT_TRUE(again) << again.why().text;
  EXPECT_EQ((*again)->last_roster(), 1u);
  ASSERT_NE((*again)->roster_bytes(1), nullptr);
  EXPECT_EQ((*again)->issuer(), keys);
  ASSERT_TRUE((*again)->roster(2, nodes(1), unix_s()));
  auto good = read(reader, **again);
  EXPECT_TRUE(good) << good.why().text;
}

TEST_F(Publisher, WhatIsSaidAgainIsNotLoggedAgain) {
  auto p = ready();
  auto size = [&] { return signed_head::parse(as_text(*p->fetch("checkpoint")))->head.size; };
  auto before = size();
  ASSERT_TRUE(p->gateway_keys(as_bytes("keys"), unix_s()));
  ASSERT_TRUE(p->issuer_keys(*p->issuer(), unix_s()));
  EXPECT_EQ(size(), before);
  ASSERT_TRUE(p->gateway_keys(as_bytes("other"), unix_s()));
  EXPECT_EQ(size(), before + 1);
}

TEST_F(Publisher, RostersFollowEachOtherAndTheLastTwoAreServed) {
  auto p = ready();
  EXPECT_FALSE(p->roster(1, nodes(1), unix_s()));
  EXPECT_FALSE(p->roster(3, nodes(1), unix_s()));
  EXPECT_FALSE(p->roster(2, {}, unix_s()));
  EXPECT_EQ(p->last_roster(), 1u);
  ASSERT_TRUE(p->roster(2, nodes(1), unix_s()));
  ASSERT_TRUE(p->roster(3, nodes(1), unix_s()));
  EXPECT_EQ(p->roster_bytes(1), nullptr);
  EXPECT_NE(p->roster_bytes(2), nullptr);
  EXPECT_NE(p->roster_bytes(3), nullptr);
}

TEST_F(Publisher, AnotherCapacityIsAnotherPolicyAndLoggedFirst) {
  auto p = ready();
  auto reader = reader_of(*p);
  ASSERT_TRUE(p->roster(2, nodes(1, 9), unix_s()));
  ASSERT_TRUE(read(reader, *p));
  auto policy = log_policy::from_entry(*reader.current(log_kind::policy));
  EXPECT_EQ(policy->classes.at("some-model"), 9u);
  auto verified = verify_roster(*p->roster_bytes(2), *reader.current(log_kind::roster));
  EXPECT_TRUE(check_roster(*verified, *policy));
}

TEST_F(Publisher, AnotherOriginInTheSameFolderIsRefused) {
  ready();
  auto other = open("another");
  ASSERT_FALSE(other);
  EXPECT_NE(other.why().text.find("is the key of origin, not of another"), std::string::npos)
      << other.why().text;
}

TEST_F(Publisher, AWitnessThatRemembersMoreThanTheLogSaysSo) {
  auto p = ready();
  auto kept = folder_ / "kept";
  p.reset();
  std::filesystem::copy(folder_ / "gateway", kept, std::filesystem::copy_options::recursive);
  p = *open();
  ASSERT_TRUE(p->roster(2, nodes(1), unix_s()));
  p.reset();
  // The log goes back in time, the witness does not.
  std::filesystem::remove_all(folder_ / "gateway/log");
  std::filesystem::rename(kept + "/log", folder_ / "gateway/log");
  auto back = open();
  bool refused = !back || !(*back)->roster(2, nodes(1), unix_s());
  EXPECT_TRUE(refused);
}

TEST(ModelClass, IsAWordWhateverTheModelIsCalled) {
  EXPECT_EQ(model_class_of("Qwen2.5 0.5B (Q4)"), "qwen2.5-0.5b--q4-");
  EXPECT_EQ(model_class_of(""), "model");
  EXPECT_EQ(model_class_of(std::string(200, 'A')).size(), 64u);
}

}  // namespace
}  // namespace lethe

// Whom a client believes: what is taken, what is refused, and with which line.
#include <gtest/gtest.h>

#include "runtime/client/client_limits.hpp"
#include "runtime/client/trust_file.hpp"
#include "tests/unit/log_samples.hpp"

namespace lethe {
namespace {

using namespace test;

trust_text sample_text() {
  return {.log = log_signer().key(),
          .witnesses = {witness_signer(0).key(), witness_signer(1).key()},
          .quorum = 2,
          .relays = {"http://127.0.0.1:8080", "https://relay.example/to/it/"},
          .origin = "gateway.example",
          .issuer = "https://issuer.example:8443",
          .issuer_name = "issuer.example",
          .authorities = "keys/ca.pem",
          .evidence = {"none", "tpm2"},
          .policy = {.name = "embedded",
                     .candidates_max = 2,
                     .redraws_max = 1,
                     .nodes_min = 3,
                     .buyers_min = 20}};
}

result<trust_file> parse(const std::string& toml) { return trust_file::parse(toml, "/k/t.toml"); }

/// What is said of a file in which that line is another one.
std::string changed(const std::string& from, const std::string& to) {
  std::string text = sample_text().toml();
  auto at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  text.replace(at, from.size(), to);
  auto read = parse(text);
  return read ? "" : read.why().text;
}

TEST(ClientTrustFile, ReadsWhatItWrites) {
  auto read = parse(sample_text().toml());
  ASSERT_TRUE(read) << read.why().text;
  EXPECT_EQ(read->log.log, log_signer().key());
  ASSERT_EQ(read->log.witnesses.size(), 2u);
  EXPECT_EQ(read->log.witnesses[1], witness_signer(1).key());
  EXPECT_EQ(read->log.quorum, 2u);
  ASSERT_EQ(read->relays.size(), 2u);
  EXPECT_EQ(read->relays[0].origin.text(), "http://127.0.0.1:8080");
  EXPECT_EQ(read->relays[0].prefix, "");
  EXPECT_EQ(read->relays[1].prefix, "/to/it");
  EXPECT_EQ(read->issuer.origin.port, 8443);
  EXPECT_EQ(read->origin, "gateway.example");
  EXPECT_EQ(read->authorities, "/k/keys/ca.pem");
  EXPECT_EQ(read->wallet, "/k/wallet");
  EXPECT_EQ(read->account, "/k/account.secret");
  EXPECT_TRUE(read->accepts("none"));
  EXPECT_FALSE(read->accepts("tdx"));
  EXPECT_EQ(read->policy.name, "embedded");
  EXPECT_EQ(read->policy.candidates_max, 2u);
  EXPECT_EQ(read->policy.redraws_max, 1u);
  EXPECT_EQ(read->policy.nodes_min, 3u);
  EXPECT_EQ(read->policy.buyers_min, 20u);
  EXPECT_EQ(read->policy.shape, shape_mode::size);
}

TEST(ClientTrustFile, RefusesWhatItDoesNotKnowWithItsLine) {
  EXPECT_EQ(changed("quorum = 2", "quorums = 2"),
            "/k/t.toml:6: quorums: there is no key \"quorums\"; did you mean quorum?");
  EXPECT_NE(changed("nodes_min", "nodes_minimum").find("/k/t.toml:24: policy.nodes_minimum"),
            std::string::npos);
  EXPECT_NE(changed("quorum = 2", "quorum = \"2\"").find("t.toml:6: quorum: must be"),
            std::string::npos);
  EXPECT_NE(changed("quorum = 2", "quorum = ").find("not TOML"), std::string::npos);
}

TEST(ClientTrustFile, RefusesKeysAndNamesThatCannotBe) {
  const std::string log = log_signer().key().text();
  EXPECT_NE(changed(log, "log.test/1+00000000+AAAA").find("t.toml:1: log: "), std::string::npos);
  EXPECT_NE(changed(log, witness_signer(7).key().text()).find("algorithm 04"), std::string::npos);
  EXPECT_NE(changed("quorum = 2", "quorum = 3").find("quorum of 3"), std::string::npos);
  EXPECT_NE(changed("http://127.0.0.1:8080", "ftp://x").find("t.toml:8: relays[0]: "),
            std::string::npos);
  EXPECT_NE(changed("issuer_name = \"issuer.example\"", "issuer_name = \"a b\"")
                .find("issuer_name: must be"),
            std::string::npos);
  EXPECT_NE(changed("name = \"embedded\"", "name = \"Embedded\"").find("policy.name: must be"),
            std::string::npos);
}

TEST(ClientTrustFile, TheAccountsSecretGoesNowhereInTheClear) {
  const std::string there = "https://issuer.example:8443";
  EXPECT_NE(changed(there, "http://issuer.example:8443").find("issuer: is plain http to another"),
            std::string::npos);
  EXPECT_EQ(changed(there, "http://127.0.0.1:8443"), "");
}

TEST(ClientTrustFile, UnattestedNodesMustBeNamed) {
  EXPECT_NE(changed("[\n  \"none\",\n  \"tpm2\",\n]", "[]").find("evidence: names no kind"),
            std::string::npos);
  std::string text = sample_text().toml();
  const std::string line = "evidence = [\n  \"none\",\n  \"tpm2\",\n]\n";
  text.erase(text.find(line), line.size());
  auto read = parse(text);
  ASSERT_FALSE(read);
  EXPECT_NE(read.why().text.find("evidence is missing"), std::string::npos) << read.why().text;
}

TEST(ClientTrustFile, AShapeIsAcceptedByItsName) {
  for (auto mode : {shape_mode::off, shape_mode::size, shape_mode::size_tick}) {
    auto text = sample_text();
    text.policy.shape = mode;
    auto read = parse(text.toml());
    ASSERT_TRUE(read) << read.why().text;
    EXPECT_EQ(read->policy.shape, mode);
  }
  EXPECT_NE(changed("shape = \"size\"", "shape = \"none\"").find("policy.shape"),
            std::string::npos);
  auto text = sample_text().toml();
  text.erase(text.find("shape = "));
  EXPECT_EQ(parse(text)->policy.shape, shape_mode::size) << "what is not said is not accepted";
}

TEST(ClientTrustFile, HoldsItsLimits) {
  std::string text = sample_text().toml() + "#";
  text.resize(limits::trust_file_bytes_max, '-');
  EXPECT_TRUE(parse(text));
  EXPECT_FALSE(parse(text + "-"));
  EXPECT_EQ(changed("redraws_max = 1", "redraws_max = 16"), "");
  EXPECT_NE(changed("redraws_max = 1", "redraws_max = 17"), "");
  EXPECT_NE(changed("candidates_max = 2", "candidates_max = 4"), "");
  EXPECT_NE(changed("nodes_min = 3", "nodes_min = 0"), "");
}

TEST(ClientTrustFile, EveryCutIsRefusedOrWhole) {
  const std::string text = sample_text().toml();
  const size_t needed = text.find("\n[policy]");
  for (size_t size = 0; size < needed - 1; ++size)
    EXPECT_FALSE(parse(text.substr(0, size))) << size;
}

}  // namespace
}  // namespace lethe

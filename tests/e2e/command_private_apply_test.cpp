// `lethe apply` and the private path: what can't change while it runs is refused by its name.
#include <gtest/gtest.h>

#include "tests/e2e/private_path.hpp"

namespace lethe {
namespace {

class PrivateApply : public PrivatePath {
 protected:
  void SetUp() override {
    tapped_ = false;
    PrivatePath::SetUp();
  }
  /// The gateway's file with other lines at its end.
  finished apply_with(const std::string& more) {
    gateway_more_ = more;
    folder_.write("gateway.toml", gateway_config("127.0.0.1:0"));
    return run_lethe({"apply", gateway_file_});
  }
  static void expect_refused(const finished& how, std::vector<std::string> names) {
    EXPECT_EQ(how.exit_code, 1) << how.out;
    names.push_back("lethe down, then lethe up");
    for (const auto& name : names) EXPECT_TRUE(has(how.err, name)) << name << "\n" << how.err;
  }
  static std::string replaced(std::string text, const std::string& what, const std::string& by) {
    auto at = text.find(what);
    EXPECT_NE(at, text.npos) << what << " in " << text;
    return at == text.npos ? text : text.replace(at, what.size(), by);
  }
  /// A service's file before and after a change, applied.
  static void expect_service(const std::string& file, const std::string& what,
                             const std::string& by, std::vector<std::string> names) {
    auto same = run_lethe({"apply", file});
    EXPECT_EQ(same.exit_code, 0) << same.err;
    EXPECT_EQ(same.out, "no difference\n");
    auto text = read_file(file);
    std::ofstream(file) << replaced(text, what, by);
    expect_refused(run_lethe({"apply", file}), names);
    expect_refused(run_lethe({"apply", "--look", file}), std::move(names));
    std::ofstream(file) << text;
    EXPECT_EQ(run_lethe({"apply", file}).out, "no difference\n");
  }
};

TEST_F(PrivateApply, AGatewaysChangesAreRefusedByName) {
  EXPECT_EQ(apply_with("").exit_code, 0);
  expect_refused(apply_with("epoch_s = 300\nminimum_nodes = 2\n"),
                 {"gateway.epoch_s: 600 -> 300", "gateway.minimum_nodes: 1 -> 2"});
  auto key = read_file(trust_);
  key = key.substr(key.find("private-witness+"));
  key = key.substr(0, key.find('"'));
  expect_refused(apply_with("witnesses = [\"http://127.0.0.1:1 " + key + "\"]\n"),
                 {"gateway.witnesses[0]: (none) -> \"http://127.0.0.1:1 "});
  auto secret = apply_with("redis = \"redis://:fjord@127.0.0.1:1\"\n");
  expect_refused(secret, {"gateway.redis: another URL"});
  EXPECT_FALSE(has(secret.out + secret.err, "fjord"));
  expect_refused(apply_with("log = \"other\"\n[engines]\ncount = 2\n"), {"gateway.log: "});
  EXPECT_TRUE(has(run_lethe({"status", "--cluster", gateway_file_}).out, "1 of 1 engines ready"));
  auto good = apply_with("[engines]\ncount = 2\n");
  EXPECT_EQ(good.exit_code, 0) << good.err;
  EXPECT_TRUE(has(good.out, "engines.count: 1 -> 2")) << good.out;
}

TEST_F(PrivateApply, SoAreThoseOfIssuerRelayAndWitness) {
  expect_service(issuer_->file, "batch = 64", "batch = 32", {"issuer.batch: 64 -> 32"});
  expect_service(folder_ / "relay.toml", "http://127.0.0.1", "https://here",
                 {"relay.gateway: \"http://127.0.0.1", "-> \"https://here"});
  auto key = read_file(trust_);
  key = key.substr(key.find("log = ") + 6);
  key = key.substr(0, key.find('\n'));
  auto file = folder_.write("witness.toml",
                            "name = \"witness\"\n[witness]\nlisten = \"127.0.0.1:0\"\nfolder = "
                            "\"witness\"\nlogs = [" +
                                key + "]\n");
  running_cluster witness(host_of{file, "local"});
  ASSERT_TRUE(witness.tells("ready")) << witness.errors();
  expect_service(file, "name = \"witness\"\n[witness]",
                 "name = \"witness\"\n[witness]\nname = \"w\"",
                 {"witness.name: \"witness\" -> \"w\""});
}

}  // namespace
}  // namespace lethe

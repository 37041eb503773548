// A log with a witness that another process runs: cosigned, shown, verified, and refused where it
// was tampered with or brought back from an old copy.
#include <gtest/gtest.h>

#include "tests/e2e/cluster.hpp"

namespace lethe {
namespace {

namespace fs = std::filesystem;

bool says(const std::string& text, const std::string& what) { return text.find(what) != text.npos; }

/// The text behind `KEY = "`, up to the next quote.
std::string quoted_after(const std::string& text, const std::string& key) {
  auto at = text.find(key + " = \"");
  if (at == text.npos) return {};
  at += key.size() + 4;
  return text.substr(at, text.find('"', at) - at);
}

/// Issuer, witness and a cluster with a gateway, from their files. Rosters are short, so that heads
/// come by themselves.
class Log : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directory(folder_ / "run");
    ::setenv("XDG_RUNTIME_DIR", (folder_ / "run").c_str(), 1);
    auto issuer = folder_.write("issuer.toml",
                                "name = \"issuer\"\n[issuer]\nlisten = \"127.0.0.1:0\"\nfolder = "
                                "\"state/issuer\"\nsecret = \"secret\"\n");
    issuer_ = std::make_unique<running_cluster>(host_of{issuer, "local"});
    ASSERT_TRUE(issuer_->tells("serves as issuer")) << issuer_->errors();
    issuer_port_ = issuer_->port("issuer");
    write_cluster("");
    auto trust = run_lethe({"keys", "public", cluster(), "--relay", "http://127.0.0.1:1"});
    ASSERT_EQ(trust.exit_code, 0) << trust.err;
    log_key_ = quoted_after(trust.out, "log");
    write_witness(0);
    start_witness();
    write_witness(witness_->port("witness"));  // for its next start
    auto key = run_lethe({"keys", "public", folder_ / "witness.toml"});
    ASSERT_EQ(key.exit_code, 0) << key.err;
    witness_key_ = key.out.substr(0, key.out.find('\n'));
    write_cluster("witnesses = [\"http://127.0.0.1:" + std::to_string(witness_->port("witness")) +
                  " " + witness_key_ + "\"]\n");
  }

  std::string cluster() const { return folder_ / "cluster.toml"; }
  std::string gateway() const { return folder_ / "state/gateway"; }
  void write_cluster(const std::string& more) {
    folder_.write("cluster.toml",
                  "name = \"private\"\n[model]\npath = \"" + std::string(places::source) +
                      "/models/tiny\"\n[batching]\nkv_memory = \"16 MiB\"\n[gateway]\nlisten = "
                      "\"127.0.0.1:0\"\nfolder = \"state/gateway\"\nepoch_s = 5\ngrace_s = 5\n"
                      "issuer_secret = \"secret\"\nissuer = \"http://127.0.0.1:" +
                      std::to_string(issuer_port_) + "\"\n" + more);
  }
  void write_witness(uint16_t port) {
    folder_.write("witness.toml",
                  "name = \"w\"\n[witness]\nname = \"outside\"\nlisten = "
                  "\"127.0.0.1:" +
                      std::to_string(port) + "\"\nfolder = \"state/witness\"\nlogs = [\"" +
                      log_key_ + "\"]\n");
  }
  void start_witness() {
    witness_ = std::make_unique<running_cluster>(host_of{folder_ / "witness.toml", "local"});
    ASSERT_TRUE(witness_->tells("serves as witness")) << witness_->errors();
  }
  void start_cluster() {
    cluster_ = std::make_unique<running_cluster>(host_of{cluster(), "local"});
    ASSERT_TRUE(cluster_->tells("ready: 1 of 1")) << cluster_->errors();
  }
  void stop_cluster() {
    EXPECT_EQ(run_lethe({"down", "--cluster", cluster()}).exit_code, 0);
    EXPECT_EQ(cluster_->wait(), 0) << cluster_->errors();
  }

  std::string checkpoint() const { return read_file(fs::path(gateway()) / "log/checkpoint"); }
  uint64_t size() const {
    auto text = checkpoint();
    return text.empty() ? 0 : std::stoull(text.substr(text.find('\n') + 1));
  }
  bool has_signature(const std::string& name) const {
    return says(checkpoint(), "\n\u2014 " + name + " ");
  }
  /// Several rosters are out, and cosigned by both.
  bool grows_to(uint64_t more_than) const {
    return eventually([&] { return size() > more_than && has_signature("outside"); });
  }
  std::string status() const { return run_lethe({"status", "--cluster", cluster()}).out; }
  std::string trust(const std::vector<std::string>& more = {}) {
    std::vector<std::string> words{"keys", "public", cluster(), "--relay", "http://127.0.0.1:1"};
    words.insert(words.end(), more.begin(), more.end());
    auto text = run_lethe(words).out;
    return folder_.write("client.toml", text);
  }
  finished verify(const std::string& what, std::vector<std::string> more = {}) {
    std::vector<std::string> words{"log", "verify", what, "--trust", folder_ / "client.toml"};
    words.insert(words.end(), more.begin(), more.end());
    return run_lethe(words);
  }
  std::string copy_of_gateway(const std::string& name) const {
    fs::copy(gateway(), folder_ / name, fs::copy_options::recursive);
    return folder_ / name;
  }
  static void flip(const fs::path& file, size_t at) {
    auto bytes = read_file(file);
    bytes.at(at) ^= 1;
    std::ofstream(file, std::ios::binary) << bytes;
  }

  scratch_folder folder_;
  std::unique_ptr<running_cluster> issuer_, witness_, cluster_;
  uint16_t issuer_port_ = 0;
  std::string log_key_, witness_key_;
};

TEST_F(Log, IsCosignedByAWitnessElsewhereThatMayDieAndComeAgain) {
  EXPECT_TRUE(says(run_lethe({"status", "--cluster", folder_ / "witness.toml"}).out,
                   "witness: 0 cosigned"));
  EXPECT_EQ(http_ask(witness_->port("witness"), "/").body,
            "a witness of logs, add-checkpoint: " + witness_key_ + "\n");
  start_cluster();
  ASSERT_TRUE(grows_to(5)) << checkpoint() << status();
  EXPECT_TRUE(has_signature("private")) << checkpoint();
  EXPECT_TRUE(has_signature("private-witness")) << checkpoint();
  EXPECT_TRUE(eventually([&] { return says(status(), "2 cosignatures"); })) << status();
  EXPECT_FALSE(says(status(), "witness outside")) << status();

  ::kill(witness_->pid, SIGKILL);
  witness_->wait();
  EXPECT_TRUE(eventually([&] { return says(status(), "witness outside is not reached: "); }))
      << status();
  const auto before = size();
  EXPECT_TRUE(eventually([&] { return size() > before && !has_signature("outside"); }))
      << "the log goes on without it";
  EXPECT_TRUE(has_signature("private-witness")) << checkpoint();
  start_witness();
  EXPECT_TRUE(grows_to(size())) << status();
  EXPECT_TRUE(eventually([&] { return !says(status(), "witness outside"); })) << status();
  trust();
  EXPECT_TRUE(eventually([&] { return verify(gateway()).exit_code == 0; }))
      << verify(gateway()).err;
  stop_cluster();
}

TEST_F(Log, IsShownAndVerifiedAndTamperingIsFound) {
  auto words = read_file(trust());
  EXPECT_TRUE(says(words, "quorum = 2\n")) << words;
  EXPECT_TRUE(says(words, witness_key_)) << words;
  // From here on one is enough: on a busy machine a head may not wait for the witness.
  EXPECT_TRUE(says(read_file(trust({"--quorum", "1"})), "quorum = 1\n"));
  auto no_url = run_lethe({"keys", "public", cluster(), "--relay", "foo"});
  EXPECT_EQ(no_url.exit_code, 1);
  EXPECT_EQ(no_url.out, "");
  EXPECT_TRUE(says(no_url.err, "--relay foo: ")) << no_url.err;
  auto too_many =
      run_lethe({"keys", "public", cluster(), "--relay", "http://127.0.0.1:1", "--quorum", "3"});
  EXPECT_TRUE(says(too_many.err, "there are 2 witnesses")) << too_many.err;
  EXPECT_TRUE(says(run_lethe({"keys", "public", cluster()}).err, "--relay is missing"));
  EXPECT_TRUE(says(run_lethe({"log", "show", cluster()}).err, "holds no log"));
  start_cluster();
  ASSERT_TRUE(grows_to(6)) << checkpoint() << status();

  auto shown = run_lethe({"log", "show", cluster()});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  for (const char* what : {"INDEX", "release", "program ", "ohttp-keys", "issuer-keys", "roster",
                           "nodes 1, capacity ", "policy", "name embedded, "})
    EXPECT_TRUE(says(shown.out, what)) << what << "\n" << shown.out;
  EXPECT_FALSE(says(shown.out, "not readable")) << shown.out;
  json_answer shown_json(run_lethe({"log", "show", gateway() + "/log", "--json"}).out);
  ASSERT_TRUE(shown_json.valid);
  EXPECT_EQ(shown_json.text("log"), "private");
  EXPECT_EQ(std::string_view(shown_json.root["entries"].at(0)["kind"].get_string().value_unsafe()),
            "release");
  for (int i = 0; i < 20; ++i) {  // its writer goes on meanwhile
    auto good = verify(cluster());
    EXPECT_EQ(good.exit_code, 0) << good.err;
    EXPECT_TRUE(says(good.out, "cosigned by private-witness")) << good.out;
  }
  stop_cluster();

  auto good = verify(gateway(), {"--json"});
  EXPECT_EQ(good.exit_code, 0) << good.err;
  EXPECT_TRUE(says(good.out, "{\"good\":true,")) << good.out;
  auto refused = [&](const std::string& copy, const std::string& why) {
    auto got = verify(copy);
    EXPECT_EQ(got.exit_code, 1);
    EXPECT_TRUE(says(got.err, why)) << got.err;
    EXPECT_EQ(got.error_lines(), 1u) << got.err;
    EXPECT_TRUE(says(verify(copy, {"--json"}).out, "{\"good\":false,"));
  };
  fs::path altered = copy_of_gateway("altered");
  flip(altered / "log/entries", 20);
  refused(altered, "log/entries: they do not make the signed root");
  fs::path roster = copy_of_gateway("roster");
  flip(roster / "rosters/0000000001", 60);
  refused(roster, "rosters/0000000001: ");
  fs::path removed = copy_of_gateway("removed");
  auto entries = read_file(removed / "log/entries");
  entries.erase(0, 2 + (size_t(uint8_t(entries[0])) << 8) + uint8_t(entries[1]));
  std::ofstream(removed / "log/entries", std::ios::binary) << entries;
  refused(removed, "what is missing was removed");
  EXPECT_TRUE(says(run_lethe({"log", "verify", "--help"}).out, "lethe log verify configs"));
  EXPECT_TRUE(says(run_lethe({"log", "show", "--help"}).out, "lethe log show configs"));
}

TEST_F(Log, BroughtBackFromAnOldCopyItIsNotCosigned) {
  trust();
  start_cluster();
  ASSERT_TRUE(grows_to(5)) << status();
  stop_cluster();
  copy_of_gateway("copy");
  start_cluster();
  ASSERT_TRUE(grows_to(size() + 2)) << status();
  stop_cluster();
  fs::remove_all(gateway());
  fs::rename(folder_ / "copy", gateway());
  start_cluster();
  EXPECT_TRUE(eventually([&] { return says(status(), "witness outside refuses: it saw "); }))
      << status();
  EXPECT_TRUE(eventually([&] { return says(status(), "it saw another history of this log"); }))
      << "once the fork is as long: " << status();
  EXPECT_FALSE(has_signature("outside")) << checkpoint();
  EXPECT_TRUE(has_signature("private-witness")) << checkpoint();
  auto got = verify(gateway());
  EXPECT_EQ(got.exit_code, 1);
  EXPECT_TRUE(says(got.err, "log: no quorum: 1 of 2 witnesses signed, 2 must")) << got.err;
  stop_cluster();
}

}  // namespace
}  // namespace lethe

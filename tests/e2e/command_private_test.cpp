// The whole private path, each part a process of its own: issuer, cluster with gateway, relay,
// client.
#include <gtest/gtest.h>

#include "tests/e2e/tap.hpp"

namespace lethe {
namespace {

bool has(const std::string& text, const std::string& what) {
  return text.find(what) != std::string::npos;
}

/// Issuer, gateway and relay as they run, with a tap before each, and a client's folder.
class PrivatePath : public testing::Test {
 protected:
  void SetUp() override {
    issuer_.emplace(
        "name = \"issuer\"\n[issuer]\nlisten = \"127.0.0.1:0\"\nfolder = \"issuer\"\n"
        "secret = \"gateway.secret\"\n");
    ASSERT_TRUE(issuer_->tells("ready")) << issuer_->errors();
    before_issuer_.emplace(issuer_->port("issuer"));
    start_gateway();
    before_gateway_.emplace(gateway_->port("gateway"));
    relay_.emplace(host_of{folder_.write("relay.toml",
                                         "name = \"relay\"\n[relay]\nlisten = \"127.0.0.1:0\"\n"
                                         "gateway = \"http://127.0.0.1:" +
                                             std::to_string(before_gateway_->port()) + "/\"\n"),
                           "local"});
    ASSERT_TRUE(relay_->tells("ready")) << relay_->errors();
    before_relay_.emplace(relay_->port("relay"));
    auto added = run_lethe({"account", "add", issuer_->file, "ann", "--quota", "512", "--out",
                            folder_ / "account.secret"});
    ASSERT_EQ(added.exit_code, 0) << added.err;
    auto trust = run_lethe({"keys", "public", gateway_file_, "--relay",
                            "http://127.0.0.1:" + std::to_string(before_relay_->port())});
    ASSERT_EQ(trust.exit_code, 0) << trust.err;
    trust_ = folder_.write("client.toml", trust.out);
    ASSERT_TRUE(roster_is_out());
  }

  std::string gateway_config(const std::string& listen) const {
    return "name = \"private\"\n[model]\npath = \"" + std::string(places::source) +
           "/models/ember\"\n[batching]\nkv_memory = \"32 MiB\"\n[gateway]\nlisten = \"" + listen +
           "\"\nfolder = \"gateway\"\nissuer = \"http://127.0.0.1:" +
           std::to_string(before_issuer_->port()) + "\"\nissuer_secret = \"" +
           (issuer_->folder() / "gateway.secret") + "\"\n";
  }
  void start_gateway(const std::string& listen = "127.0.0.1:0") {
    gateway_file_ = folder_.write("gateway.toml", gateway_config(listen));
    gateway_.emplace(host_of{gateway_file_, "local"});
    ASSERT_TRUE(gateway_->tells("ready")) << gateway_->errors();
  }
  /// What the gateway counts; `roster` is the number of the last one.
  uint64_t gateway_count(const std::string& name) const {
    json_answer status(run_lethe({"status", "--json", "--cluster", gateway_file_}).out);
    uint64_t n = 0;
    if (!status.valid) return 0;
    for (auto s : status.root["services"].get_array())
      if (s["counts"][name].get_uint64().get(n)) n = 0;
    return n;
  }
  /// It tells its counts twice a second.
  bool gateway_counts(const std::string& name, uint64_t n) const {
    for (int i = 0; i < 100 && gateway_count(name) != n; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    return gateway_count(name) == n;
  }
  bool roster_is_out(uint64_t above = 0) const {
    for (int i = 0; i < 300 && gateway_count("roster") <= above; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    return gateway_count("roster") > above;
  }
  void buy() {
    auto bought = run_lethe({"tokens", "buy", trust_});
    ASSERT_EQ(bought.exit_code, 0) << bought.err;
    ASSERT_EQ(bought.out, "bought 64 tokens; the wallet has 64\n");
  }
  finished ask(const std::string& what, std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"fetch", trust_, "--prompt", what});
    return run_lethe(more);
  }

  scratch_folder folder_;
  std::optional<running_cluster> issuer_, gateway_, relay_;
  std::optional<tap> before_issuer_, before_gateway_, before_relay_;
  std::string gateway_file_, trust_;
};

TEST_F(PrivatePath, AnswersAndShowsEachCheck) {
  buy();
  auto said = ask("My dog is called Pim. What is my dog called?", {"--explain"});
  ASSERT_EQ(said.exit_code, 0) << said.err;
  EXPECT_TRUE(has(said.out, "Your dog is called Pim.")) << said.out;
  for (const char* step : {"gateway keys", "log head", "logged keys", "roster", "exposure", "draw",
                           "token", "seal", "answer", "receipt"})
    EXPECT_TRUE(has(said.err, std::string("ok     ") + step)) << step << "\n" << said.err;
  EXPECT_FALSE(has(said.err, "FAILED")) << said.err;
  EXPECT_TRUE(has(said.err, "no node is attested"));
  EXPECT_TRUE(gateway_counts("spent", 1));
  EXPECT_EQ(run_lethe({"tokens", "count", trust_}).out.substr(0, 9), "63 tokens");
}

TEST_F(PrivatePath, StreamsToItsEnd) {
  buy();
  auto said = ask("What is a river?", {"--stream"});
  ASSERT_EQ(said.exit_code, 0) << said.err;
  EXPECT_TRUE(said.out.ends_with("data: [DONE]\n\n")) << said.out;
}

TEST_F(PrivatePath, ChatKeepsTheConversation) {
  buy();
  auto said = run_lethe({"chat", trust_}, "My cat is called Tom.\nWhat is my cat called?\n");
  ASSERT_EQ(said.exit_code, 0) << said.err;
  EXPECT_TRUE(has(said.out, "Tom")) << said.out;
  EXPECT_TRUE(gateway_counts("spent", 2));
}

/// The README's promise: none of them is told both who asks and what.
TEST_F(PrivatePath, NobodyBetweenSeesWhatIsAskedOrWhoAsks) {
  buy();
  std::string secret = read_file(folder_ / "account.secret").substr(0, 40);
  const std::string canary = "Zebrafinch";
  auto said = ask("My dog is called " + canary + ". What is my dog called?");
  ASSERT_EQ(said.exit_code, 0) << said.err;
  ASSERT_TRUE(has(said.out, canary.substr(0, 4))) << said.out;
  for (const auto* between : {&*before_relay_, &*before_gateway_}) {
    EXPECT_GT(between->seen().size(), 5000u);
    EXPECT_FALSE(between->saw(canary));
    EXPECT_FALSE(between->saw("messages"));
    EXPECT_FALSE(between->saw("PrivateToken"));
    EXPECT_FALSE(between->saw(secret));
  }
  EXPECT_FALSE(before_issuer_->saw(canary));
  EXPECT_TRUE(before_issuer_->saw(secret));  // the tap does see what is there to be seen
  auto in_common = [](const tap& a, const tap& b) {
    return run_lethe({"tap", "join", a.file(), b.file()}).out;
  };
  EXPECT_EQ(in_common(*before_issuer_, *before_gateway_), "0\n");
  EXPECT_EQ(in_common(*before_issuer_, *before_relay_), "0\n");
  // Relay and gateway pass the same sealed bytes on: a join would be found.
  EXPECT_GT(std::stoul(in_common(*before_relay_, *before_gateway_)), 1000u);
  std::string log = gateway_->errors() + relay_->errors() + issuer_->errors();
  EXPECT_FALSE(has(log, canary) || has(log, secret));
}

/// The control of the test above: the same question by the plain interface, through the same kind
/// of tap.
TEST(PlainPath, ATapSeesWhatIsAsked) {
  running_cluster lab("profile = \"lab\"\n[model]\npath = \"" + std::string(places::source) +
                      "/models/ember\"\n[listen]\napi = \"127.0.0.1:0\"\n[batching]\nkv_memory = "
                      "\"32 MiB\"\n");
  ASSERT_TRUE(lab.tells("ready")) << lab.errors();
  tap before(lab.port("api"));
  auto said = http_ask(before.port(), "/v1/chat/completions",
                       R"({"model":"ember","messages":[{"role":"user","content":"Zebrafinch"}]})");
  EXPECT_EQ(said.status, 200);
  EXPECT_TRUE(before.saw("Zebrafinch"));
}

TEST_F(PrivatePath, AnEnginesRefusalIsItsAnswerAndCostsItsToken) {
  buy();
  auto said = run_lethe({"fetch", trust_, "--data", R"({"model":"ember"})"});
  EXPECT_EQ(said.exit_code, 1);
  EXPECT_TRUE(has(said.err, "the node answers 400")) << said.err;
  EXPECT_TRUE(has(said.out, "messages")) << said.out;
  EXPECT_EQ(run_lethe({"tokens", "count", trust_}).out.substr(0, 9), "63 tokens");
}

TEST_F(PrivatePath, WithoutTokensNothingIsAsked) {
  auto said = ask("Hello");
  EXPECT_EQ(said.exit_code, 1);
  EXPECT_TRUE(has(said.err, "token")) << said.err;
  for (int i = 0; i < 100 && gateway_count("looks") == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_GT(gateway_count("looks"), 0u);
  EXPECT_EQ(gateway_count("spent"), 0u);
}

TEST_F(PrivatePath, ARevokedAccountBuysNothing) {
  ASSERT_EQ(run_lethe({"account", "revoke", issuer_->file, "ann"}).exit_code, 0);
  auto bought = run_lethe({"tokens", "buy", trust_});
  EXPECT_EQ(bought.exit_code, 1);
  EXPECT_TRUE(has(bought.err, "account")) << bought.err;
}

TEST_F(PrivatePath, ALogOfAnotherKeyIsNotBelieved) {
  scratch_folder other;
  auto config = other.write("other.toml", gateway_config("127.0.0.1:0"));
  auto trust = run_lethe({"keys", "public", config, "--relay",
                          "http://127.0.0.1:" + std::to_string(before_relay_->port())});
  ASSERT_EQ(trust.exit_code, 0) << trust.err;
  auto file = other.write("client.toml", trust.out);
  auto said = run_lethe({"fetch", file, "--prompt", "Hello"});
  EXPECT_EQ(said.exit_code, 1);
  EXPECT_TRUE(has(said.err, "log: ")) << said.err;
}

TEST_F(PrivatePath, AGatewayThatWasKilledGoesOnWithItsLogAndItsSpends) {
  buy();
  ASSERT_EQ(ask("Hello").exit_code, 0);
  uint64_t before = gateway_count("roster");
  uint16_t port = gateway_->port("gateway");
  ::kill(gateway_->pid, SIGKILL);
  ::waitpid(gateway_->pid, nullptr, 0);
  gateway_->pid = -1;
  auto said = ask("Hello");
  EXPECT_EQ(said.exit_code, 1) << said.out;
  start_gateway("127.0.0.1:" + std::to_string(port));
  ASSERT_TRUE(roster_is_out(before));
  said = ask("What is a river?");
  EXPECT_EQ(said.exit_code, 0) << said.err;
  EXPECT_TRUE(has(said.out, "river")) << said.out;
}

/// What the client marks as spent it never offers again; a wallet that was copied back is found
/// out.
TEST_F(PrivatePath, AWalletThatIsCopiedBackIsRefused) {
  buy();
  std::filesystem::path kept = folder_ / "kept";
  std::filesystem::create_directory(kept);
  auto wallet_files = [&](const std::filesystem::path& in) {
    std::vector<std::filesystem::path> files;
    for (const auto& f : std::filesystem::directory_iterator(in))
      if (f.path().filename().string().starts_with("wallet")) files.push_back(f.path());
    return files;
  };
  auto here = std::filesystem::path(folder_ / "");
  ASSERT_FALSE(wallet_files(here).empty());
  for (const auto& f : wallet_files(here)) std::filesystem::copy(f, kept / f.filename());
  ASSERT_EQ(ask("Hello").exit_code, 0);
  for (const auto& f : wallet_files(kept))
    if (!f.filename().string().ends_with(".lock"))
      std::filesystem::copy(f, here / f.filename(),
                            std::filesystem::copy_options::overwrite_existing);
  auto said = ask("Hello");
  EXPECT_EQ(said.exit_code, 1);
  EXPECT_TRUE(has(said.err, "wallet")) << said.err;
}

}  // namespace
}  // namespace lethe

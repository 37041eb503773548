// The whole private path, each part a process of its own: issuer, cluster with gateway, relay,
// client.
#include <gtest/gtest.h>

#include "tests/e2e/private_path.hpp"

namespace lethe {
namespace {

TEST_F(PrivatePath, AnswersAndShowsEachCheck) {
  buy();
  auto said = ask("My dog is called Pim. What is my dog called?", {"--explain"});
  ASSERT_EQ(said.exit_code, 0) << said.err;
  EXPECT_TRUE(has(said.out, "Your dog is called Pim.")) << said.out;
  for (const char* step : {"gateway keys", "log head", "logged keys", "shape", "roster", "exposure",
                           "draw", "token", "seal", "answer", "receipt"})
    EXPECT_TRUE(has(said.err, std::string("ok     ") + step)) << step << "\n" << said.err;
  EXPECT_FALSE(has(said.err, "FAILED")) << said.err;
  EXPECT_LT(said.err.find("no node is attested"), said.err.find("gateway keys"));
  EXPECT_FALSE(has(said.err, "some day before")) << said.err;  // they were bought just now
  EXPECT_TRUE(has(said.err, "within the hour can be matched")) << said.err;
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

TEST_F(PrivatePath, WhatNoNodeWouldServeCostsNoToken) {
  buy();
  auto refused = [&](const std::vector<std::string>& more, const std::string& why) {
    std::vector<std::string> words{"fetch", trust_};
    words.insert(words.end(), more.begin(), more.end());
    auto said = run_lethe(words);
    EXPECT_EQ(said.exit_code, 1) << said.out;
    EXPECT_TRUE(has(said.err, why) && has(said.err, "nothing was asked")) << said.err;
  };
  refused({"--data", "{bad"}, "the body is no JSON: ");
  refused({"--data", "[1]"}, "the body is no JSON object");
  refused({"/v1/embeddings", "--prompt", "Hello"}, "/v1/embeddings: there is no such path");
  refused({}, "there is no body");
  EXPECT_EQ(run_lethe({"fetch", trust_, "--data", "@" + folder_ / "none.json"}).exit_code, 1);
  EXPECT_EQ(run_lethe({"tokens", "count", trust_}).out.substr(0, 9), "64 tokens");
  // The control, from a file.
  auto body = folder_.write(
      "body.json",
      R"({"model":"ember","messages":[{"role":"user","content":"What is a river?"}]})");
  auto said = run_lethe({"fetch", trust_, "--data", "@" + body});
  EXPECT_EQ(said.exit_code, 0) << said.err;
  EXPECT_TRUE(has(said.out, "river")) << said.out;
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
    if (!f.filename().string().ends_with(".journal"))
      std::filesystem::copy(f, here / f.filename(),
                            std::filesystem::copy_options::overwrite_existing);
  auto said = ask("Hello");
  EXPECT_EQ(said.exit_code, 1);
  EXPECT_TRUE(has(said.err, "wallet")) << said.err;
}

}  // namespace
}  // namespace lethe

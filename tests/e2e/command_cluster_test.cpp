// A cluster as its operator runs it: up, under load, scaled, changed, down.
#include <gtest/gtest.h>

#include <atomic>

#include "tests/e2e/cluster.hpp"

namespace lethe {
namespace {

/// Clients that ask one request after the other, and what they were told.
class load {
 public:
  load(uint16_t port, int clients, std::string body) {
    for (int i = 0; i < clients; ++i)
      threads_.emplace_back([this, port, body] {
        while (!stop_) {
          auto said = http_ask(port, "/v1/completions", body);
          said.status == 200 ? ++good : ++bad;
          if (said.status == 200 && said.body.find("\"usage\"") == said.body.npos) ++cut;
        }
      });
  }
  ~load() { end(); }
  void end() {
    stop_ = true;
    for (auto& t : threads_) t.join();
    threads_.clear();
  }
  std::atomic<uint64_t> good{0}, bad{0}, cut{0};

 private:
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

TEST(Cluster, ComesUpAnswersAndGoesDown) {
  running_cluster c(lab_config());
  ASSERT_TRUE(c.tells("ready: 1 of 1"));
  uint16_t api = c.port("api");
  auto said = http_ask(api, "/v1/completions", completion(8));
  EXPECT_EQ(said.status, 200) << said.body;
  EXPECT_EQ(json_answer(said.body).text("object"), "text_completion");
  EXPECT_EQ(http_ask(c.port("metrics"), "/readyz").status, 200);
  auto status = run_lethe({"status", "--json", "--cluster", c.file});
  EXPECT_EQ(status.exit_code, 0) << status.err;
  EXPECT_NE(status.out.find("\"served\":1"), std::string::npos) << status.out;
  EXPECT_EQ(run_lethe({"down", "--cluster", c.file}).exit_code, 0);
  EXPECT_EQ(c.wait(), 0) << c.errors();
}

TEST(Cluster, TheSameAnswerFromEveryCutAndPlacement) {
  auto answer = [](const std::string& engines) {
    running_cluster c(lab_config("[engines]\n" + engines));
    EXPECT_TRUE(c.tells("ready: ")) << c.errors();
    auto said = http_ask(c.port("api"), "/v1/completions", completion(24, R"(,"temperature":0)"));
    json_answer json(said.body);
    auto choices = json.root["choices"].get_array();
    return std::string(choices.at(0)["text"].get_string().value_unsafe());
  };
  std::string one = answer("count = 1\n");
  EXPECT_FALSE(one.empty());
  EXPECT_EQ(answer("tensor = 2\npipeline = 2\n"), one);
  EXPECT_EQ(answer("tensor = 2\nprocesses = \"separate\"\n"), one);
}

TEST(Cluster, MetricsCountWhatWasServedAndNothingElse) {
  running_cluster c(lab_config());
  ASSERT_TRUE(c.tells("ready: 1 of 1"));
  uint16_t api = c.port("api");
  EXPECT_EQ(http_ask(api, "/v1/completions", completion(8)).status, 200);
  EXPECT_EQ(http_ask(api, "/v1/completions", completion(1, R"(,"stream":true)")).status, 200);
  EXPECT_EQ(http_ask(api, "/v1/completions", "{").status, 400);
  std::string text;
  for (int i = 0; i < 500 && text.find("{finished_reason=\"refused\"} 1\n") == text.npos; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    text = http_ask(c.port("metrics"), "/metrics").body;
  }
  for (const char* line :
       {"time_to_first_token_seconds_count 2", "inter_token_latency_seconds_count 7",
        "request_time_per_output_token_seconds_count 1", "e2e_request_latency_seconds_count 2",
        "request_queue_time_seconds_count 2", "request_prefill_time_seconds_count 2",
        "request_decode_time_seconds_bucket{le=\"+Inf\"} 2", "request_generation_tokens_sum 9",
        "request_generation_tokens_bucket{le=\"4\"} 1",
        "request_generation_tokens_bucket{le=\"16\"} 2", "request_prompt_tokens_count 2"})
    EXPECT_NE(text.find("lethe:" + std::string(line) + "\n"), std::string::npos) << line;
  EXPECT_EQ(text.find("e2e_request_latency_seconds_sum 0\n"), std::string::npos);
}

TEST(Cluster, ASignalLetsRunningRequestsFinish) {
  running_cluster c(lab_config());
  ASSERT_TRUE(c.tells("ready: 1 of 1"));
  uint16_t api = c.port("api");
  http_said said;
  std::thread asker(
      [&] { said = http_ask(api, "/v1/completions", completion(400, R"(,"stream":true)")); });
  while (http_ask(c.port("metrics"), "/metrics").body.find("requests_admitted_total 1\n") ==
         std::string::npos)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ::kill(c.pid, SIGTERM);
  asker.join();
  EXPECT_EQ(said.status, 200);
  EXPECT_TRUE(said.body.ends_with("data: [DONE]\n\n")) << said.body.substr(said.body.size() / 2);
  EXPECT_EQ(c.wait(), 0) << c.errors();
}

TEST(Cluster, ScalesAndChangesUnderLoadWithoutAFailedRequest) {
  running_cluster c(lab_config("[engines]\nprocesses = \"separate\"\n"));
  ASSERT_TRUE(c.tells("ready: 1 of 1"));
  load clients(c.port("api"), 16, completion(12));
  auto run = [&](std::vector<std::string> words) {
    auto done = run_lethe(words);
    EXPECT_EQ(done.exit_code, 0) << words[0] << ": " << done.out << done.err;
  };
  run({"scale", "engines=3", "--cluster", c.file});
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  run({"scale", "engines=1", "--cluster", c.file});
  std::string changed = c.folder().write(
      "changed.toml",
      lab_config("[engines]\ncount = 2\nprocesses = \"separate\"\n", "running = 8\n"));
  run({"apply", changed});
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  clients.end();
  EXPECT_GT(clients.good, 30u);
  EXPECT_EQ(clients.bad, 0u) << c.errors();
  EXPECT_EQ(clients.cut, 0u);
}

TEST(Cluster, AnotherOfTheSameNameIsRefused) {
  running_cluster c(lab_config());
  ASSERT_TRUE(c.tells("ready: 1 of 1"));
  auto second = run_lethe({"up", c.file});
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_NE(second.err.find("runs here already"), std::string::npos) << second.err;
  EXPECT_EQ(http_ask(c.port("metrics"), "/readyz").status, 200);
}

TEST(Cluster, WhatCannotWorkIsRefusedBeforeAnythingStarts) {
  scratch_folder folder;
  auto up = [&](const std::string& config) {
    return run_lethe({"up", folder.write("x.toml", config)});
  };
  auto strict =
      up("[model]\npath = \"" LETHE_SOURCE_DIR "/models/tiny\"\n[listen]\napi = \"127.0.0.1:0\"\n");
  EXPECT_EQ(strict.exit_code, 1);
  EXPECT_NE(strict.err.find("listen.api"), std::string::npos) << strict.err;
  auto lost = up("profile = \"lab\"\n[model]\npath = \"/nowhere\"\n");
  EXPECT_EQ(lost.exit_code, 1);
  EXPECT_NE(lost.err.find("/nowhere"), std::string::npos) << lost.err;
  auto busy = running_cluster(lab_config());
  ASSERT_TRUE(busy.tells("ready"));
  std::string port = std::to_string(busy.port("api"));
  auto taken = up("name = \"other\"\nprofile = \"lab\"\n[model]\npath = \"" LETHE_SOURCE_DIR
                  "/models/tiny\"\n[listen]\napi = \"127.0.0.1:" +
                  port + "\"\n");
  EXPECT_EQ(taken.exit_code, 1);
  EXPECT_NE(taken.err.find(port), std::string::npos) << taken.err;
}

}  // namespace
}  // namespace lethe

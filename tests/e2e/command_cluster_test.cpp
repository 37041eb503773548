// A cluster as its operator runs it: up, under load, scaled, changed, down.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/e2e/load.hpp"
#include "tests/places.hpp"

namespace lethe {
namespace {

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

/// Whoever knows how long an answer is need not wait for more.
TEST(Cluster, WhoLeavesWithAWholeAnswerWasServed) {
  running_cluster c(lab_config());
  ASSERT_TRUE(c.tells("ready: 1 of 1"));
  const uint16_t api = c.port("api");
  constexpr int asked = 20;
  for (int i = 0; i < asked; ++i) {
    const int fd = connect_to(api);
    const std::string body = completion(8);
    const std::string text =
        "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
        std::to_string(body.size()) + "\r\n\r\n" + body;
    ASSERT_EQ(::send(fd, text.data(), text.size(), MSG_NOSIGNAL), ssize_t(text.size()));
    std::string said;
    size_t head = said.npos / 2, length = 0;
    for (char one; said.size() < head + length && ::recv(fd, &one, 1, 0) == 1;) {
      said += one;
      if (length > 0 || !said.ends_with("\r\n\r\n")) continue;
      head = said.size();
      length = std::strtoul(said.c_str() + said.find("Content-Length: ") + 16, nullptr, 10);
      ASSERT_GT(length, 0u) << said;
    }
    ::close(fd);
  }
  std::string text;
  auto has = [&](const std::string& line) { return text.find(line + "\n") != text.npos; };
  for (int i = 0; i < 500 && !has("lethe:e2e_request_latency_seconds_count 20"); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    text = http_ask(c.port("metrics"), "/metrics").body;
  }
  EXPECT_TRUE(has("lethe:e2e_request_latency_seconds_count 20")) << text;
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
  load clients(c.port("api"), 16, 12);
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
  EXPECT_GT(clients.seen.whole, 30u);
  EXPECT_EQ(clients.seen.retryable, 0u) << c.errors();
  EXPECT_EQ(clients.seen.cut, 0u);
  EXPECT_EQ(clients.seen.other, 0u);
}

TEST(Cluster, GoesOnWhereNobodyReadsWhatItTells) {
  scratch_folder folder;
  ::setenv("XDG_RUNTIME_DIR", folder.write("run", "").c_str(), 1);
  std::filesystem::remove(folder / "run");
  std::filesystem::create_directory(folder / "run");
  auto file = folder.write("unread.toml", "name = \"unread\"\n" + lab_config());
  auto up =
      std::string(places::program) + " up " + file + " 2>&1 >/dev/null | head -n 1 >/dev/null";
  std::thread running([&] { EXPECT_EQ(std::system(up.c_str()), 0); });
  for (int i = 0; i < 300 && !is_whole(file); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(run_lethe({"scale", "engines=2", "--cluster", file}).exit_code, 0);
  EXPECT_TRUE(is_whole(file));
  auto down =
      "timeout -k 1 20 " + std::string(places::program) + " down --cluster " + file + " >/dev/null";
  EXPECT_EQ(std::system(down.c_str()), 0);
  running.join();
}

/// Waits until `lethe status --json` says all of this.
bool status_says(const std::string& cluster, const std::vector<std::string>& all) {
  auto until = test_clock::now() + std::chrono::seconds(30);
  while (test_clock::now() < until) {
    auto said = run_lethe({"status", "--json", "--cluster", cluster}).out;
    if (std::ranges::all_of(all, [&](const auto& one) { return said.find(one) != said.npos; }))
      return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return false;
}

TEST(Cluster, LoadBringsAnEngineAndItsEndTakesItAwayWithoutAFailedRequest) {
  running_cluster c(
      lab_config("[scaling]\nmost = 2\nqueued = 2\nhold_ms = 200\nidle_ms = "
                 "500\n[health]\nheartbeat_ms = 50\n",
                 "running = 2\n"));
  ASSERT_TRUE(c.tells("ready: 1 of 1"));
  load one(c.port("api"), 1, 12), many(c.port("api"), 12, 200);
  EXPECT_TRUE(status_says(c.file, {"\"wanted\":2", " s ago 1 -> 2: "}));
  EXPECT_TRUE(c.tells("ready: 2 of 2")) << c.errors();
  many.end();
  EXPECT_TRUE(status_says(c.file, {"\"wanted\":1", " 2 -> 1: "}));
  one.end();
  EXPECT_TRUE(c.tells("ready: 1 of 1"));
  for (const auto* l : {&one, &many}) {
    EXPECT_GT(l->seen.whole, 0u);
    EXPECT_EQ(l->seen.retryable + l->seen.other, 0u) << c.errors();
    EXPECT_EQ(l->seen.cut, 0u);
  }
  auto by_hand = run_lethe({"scale", "engines=2", "--cluster", c.file});
  EXPECT_EQ(by_hand.exit_code, 1);
  EXPECT_NE(by_hand.err.find("between 1 and 2 engines"), std::string::npos) << by_hand.err;
  EXPECT_NE(run_lethe({"status", "--cluster", c.file}).out.find("1 to 2 by load; "),
            std::string::npos);
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
  auto strict = up("[model]\npath = \"" + std::string(places::source) +
                   "/models/tiny\"\n[listen]\napi = \"127.0.0.1:0\"\n");
  EXPECT_EQ(strict.exit_code, 1);
  EXPECT_NE(strict.err.find("listen.api"), std::string::npos) << strict.err;
  auto lost = up("profile = \"lab\"\n[model]\npath = \"/nowhere\"\n");
  EXPECT_EQ(lost.exit_code, 1);
  EXPECT_NE(lost.err.find("/nowhere"), std::string::npos) << lost.err;
  auto busy = running_cluster(lab_config());
  ASSERT_TRUE(busy.tells("ready"));
  std::string port = std::to_string(busy.port("api"));
  std::string model = std::string(places::source) + "/models/tiny";
  auto taken = up("name = \"other\"\nprofile = \"lab\"\n[model]\npath = \"" + model +
                  "\"\n[listen]\napi = \"127.0.0.1:" + port + "\"\n");
  EXPECT_EQ(taken.exit_code, 1);
  EXPECT_NE(taken.err.find(port), std::string::npos) << taken.err;
}

}  // namespace
}  // namespace lethe

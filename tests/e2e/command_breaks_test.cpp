// An actor of a running cluster throws: what it held ends with an error that may be asked again,
// and either it is begun anew or the program ends and says why. Never something in between.
#include <gtest/gtest.h>

#include <atomic>

#include "tests/e2e/cluster.hpp"
#include "tests/places.hpp"

namespace lethe {
namespace {

/// A cluster whose actors can be made to throw. One request runs meanwhile.
class fragile_cluster {
 public:
  explicit fragile_cluster(const std::string& engines)
      : cluster_({.file = config(engines), .host = "local", .program = places::throwing_program}) {}

  /// It happens with the next message to an actor of that name.
  bool make_throw(const std::string& actor) {
    const std::string order = here() + "/throws";
    std::filesystem::rename(folder_.write("order", actor), order);
    auto until = test_clock::now() + std::chrono::seconds(10);
    while (test_clock::now() < until) {
      if (!std::filesystem::exists(order)) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }

  running_cluster& operator*() { return cluster_; }
  running_cluster* operator->() { return &cluster_; }

 private:
  /// Where control sockets are, and where the program looks for what is to throw.
  std::string here() const { return folder_ / "here"; }
  std::string config(const std::string& engines) {
    std::filesystem::create_directory(here());
    ::setenv("XDG_RUNTIME_DIR", here().c_str(), 1);
    return folder_.write("cluster.toml",
                         lab_config("[engines]\n" + engines + "[health]\nrestart_ms = 300\n"));
  }

  scratch_folder folder_;
  running_cluster cluster_;
};

uint64_t admitted(uint16_t metrics) {
  std::string text = http_ask(metrics, "/metrics").body, key = "\nlethe:requests_admitted_total ";
  size_t at = text.find(key);
  return at == text.npos ? 0 : std::strtoull(text.c_str() + at + key.size(), nullptr, 10);
}

bool whole(const http_said& said) {
  return said.status == 200 && said.body.ends_with("data: [DONE]\n\n");
}

/// Or with an error that says: ask again.
bool may_be_asked_again(const http_said& said) {
  return whole(said) || said.status == 503 ||
         (said.status == 200 && said.body.find("\"server_error\"") != std::string::npos);
}

/// Of the long request that runs while `happens` does: one after another, should one end before.
http_said ask_while(fragile_cluster& c, const std::function<void()>& happens) {
  uint16_t api = c->port("api"), metrics = c->port("metrics");
  http_said said;
  std::atomic<bool> happened = false;
  uint64_t before = admitted(metrics);
  std::thread asker([&] {
    do {
      said = http_ask(api, "/v1/completions", completion(480, R"(,"stream":true)"));
    } while (whole(said) && !happened);
  });
  while (admitted(metrics) == before) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  happens();
  happened = true;
  asker.join();
  return said;
}

bool serves_again(fragile_cluster& c, const std::string& ready) {
  auto until = test_clock::now() + std::chrono::seconds(15);
  while (test_clock::now() < until) {
    if (http_ask(c->port("api"), "/v1/completions", completion(4)).status == 200 &&
        run_lethe({"status", "--cluster", c->file}).out.find(ready) != std::string::npos)
      return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return false;
}

/// A supervisor hears something when there is an engine to start.
bool make_supervisor_throw(fragile_cluster& c) {
  bool threw = false;
  std::thread order([&] { threw = c.make_throw("supervisor"); });
  (void)run_lethe({"scale", "engines=3", "--patience", "0", "--cluster", c->file});
  order.join();
  return threw;
}

class BrokenPart : public testing::TestWithParam<const char*> {};

TEST_P(BrokenPart, IsBegunAnewAndItsRequestsAreTold) {
  fragile_cluster c(std::string("count = 2\nprocesses = \"") + GetParam() + "\"\n");
  ASSERT_TRUE(c->tells("ready: 2 of 2")) << c->errors();
  for (std::string actor : {"request", "engine", "supervisor"}) {
    SCOPED_TRACE(actor);
    bool super = actor == "supervisor", threw = false;
    auto said =
        ask_while(c, [&] { threw = super ? make_supervisor_throw(c) : c.make_throw(actor); });
    EXPECT_TRUE(threw);
    EXPECT_TRUE(may_be_asked_again(said)) << said.status << said.body;
    EXPECT_TRUE(serves_again(c, super ? "3 of 3" : "2 of 2"))
        << run_lethe({"status", "--cluster", c->file}).out << c->errors();
    // One request's end is no news; the others are, with the kind of the exception.
    if (actor != "request") {
      EXPECT_NE(c->errors().find("it broke: std::bad_alloc"), std::string::npos) << c->errors();
    }
    if (actor == "engine") {
      EXPECT_EQ(c->errors().find("supervisor: it broke"), std::string::npos) << c->errors();
    }
  }
  EXPECT_NE(c->errors().find("supervisor: it broke"), std::string::npos) << c->errors();
  EXPECT_EQ(run_lethe({"down", "--cluster", c->file}).exit_code, 0);
  EXPECT_EQ(c->wait(), 0) << c->errors();
}

INSTANTIATE_TEST_SUITE_P(Breaks, BrokenPart, testing::Values("shared", "separate"));

TEST(Breaks, WhatKnowsEverythingEndsTheProgramAloud) {
  for (const char* actor : {"scheduler", "directory", "face"}) {
    SCOPED_TRACE(actor);
    fragile_cluster c("count = 2\nprocesses = \"separate\"\n");
    ASSERT_TRUE(c->tells("ready: 2 of 2")) << c->errors();
    bool threw = false;
    auto said = ask_while(c, [&] { threw = c.make_throw(actor); });
    EXPECT_TRUE(threw);
    EXPECT_TRUE(may_be_asked_again(said)) << said.status << said.body;
    EXPECT_EQ(c->wait(), 1);
    EXPECT_NE(c->errors().find(std::string("the ") + actor + ": it broke: std::bad_alloc"),
              std::string::npos)
        << c->errors();
    EXPECT_EQ(run_lethe({"status", "--cluster", c->file}).exit_code, 1);
  }
}

}  // namespace
}  // namespace lethe

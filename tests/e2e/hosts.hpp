#pragma once

#include <gtest/gtest.h>

#include "tests/e2e/load.hpp"
#include "tests/e2e/network.hpp"

namespace lethe {

inline constexpr uint16_t port = 7001;

class hosts_test : public testing::Test {
 protected:
  void SetUp() override {
    if (auto why = network_.begin(); !why.empty()) GTEST_SKIP() << why;
    for (const char* name : {"north", "south", "west"}) {
      machines_.emplace(name, network_.add());
      if (machines_.at(name).address.empty()) GTEST_SKIP() << "no host can be made on a network";
    }
    std::filesystem::create_directory(folder_ / "run");
    ::setenv("XDG_RUNTIME_DIR", (folder_ / "run").c_str(), 1);
  }

  const net_host& machine(const std::string& name) const { return machines_.at(name); }

  std::string config(const std::vector<std::string>& hosts, int engines,
                     int lost_after_ms = 5000) const {
    std::string text;
    for (const auto& name : hosts)
      text += "[[hosts]]\nname = \"" + name + "\"\naddress = \"" + machine(name).address +
              "\"\nport = " + std::to_string(port) + "\n";
    return lab_config(
        text + "[engines]\ntensor = 2\npipeline = 2\nplacement = \"spread\"\ncount = " +
        std::to_string(engines) + "\n[tls]\nfolder = \"keys\"\n[health]\nheartbeat_ms = 200\n" +
        "lost_after_ms = " + std::to_string(lost_after_ms) + "\n");
  }
  std::string file(const std::string& name, const std::string& text) const {
    auto path = folder_.write(name, text);
    auto made = run_lethe({"keys", "init", path});
    EXPECT_EQ(made.exit_code, 0) << made.err;
    return path;
  }

  /// `lethe up FILE --host NAME` there, or elsewhere.
  running_cluster& up(const std::string& path, const std::string& host,
                      const std::string& where = {}) {
    running_.erase(host);
    machine(where.empty() ? host : where).on([&] {
      running_.try_emplace(host, host_of{path, host, program_});
    });
    return running_.at(host);
  }
  running_cluster& host(const std::string& name) { return running_.at(name); }
  uint16_t api() { return host("north").port("api"); }

  http_said ask(const std::string& prompt, uint32_t tokens = 24) {
    std::string body = R"({"model":"tiny","temperature":0,"ignore_eos":true,"max_tokens":)" +
                       std::to_string(tokens) + R"(,"prompt":")" + prompt + "\"}";
    uint16_t to = api();
    return machine("north").on([&] { return http_ask(to, "/v1/completions", body); });
  }
  std::unique_ptr<load> clients(int n, uint32_t tokens = 16) {
    uint16_t to = api();
    return machine("north").on([&] { return std::make_unique<load>(to, n, tokens); });
  }

  std::string status(const std::string& path) const {
    return run_lethe({"status", "--json", "--cluster", path}).out;
  }
  bool joined(const std::string& path, const std::string& name) const {
    return status(path).find("{\"name\":\"" + name + "\",\"joined\":true") != std::string::npos;
  }

  std::string program_ = places::program;
  scratch_folder folder_;
  small_network network_;
  std::map<std::string, net_host> machines_;
  std::map<std::string, running_cluster> running_;
};

inline std::string text_of(const http_said& said) {
  json_answer json(said.body);
  if (said.status != 200 || !json.valid) return "(" + std::to_string(said.status) + ")";
  return std::string(json.root["choices"].at(0)["text"].get_string().value_unsafe());
}

}  // namespace lethe

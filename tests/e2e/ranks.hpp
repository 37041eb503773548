#pragma once

#include "runtime/audit/memory_scan.hpp"
#include "tests/e2e/load.hpp"
#include "tests/places.hpp"

// What tests of engines whose ranks are processes ask and look at.

namespace lethe {

/// Processes of a cluster, or of one host of it, that were started as that.
inline std::vector<pid_t> processes_of(const running_cluster& c, const std::string& command) {
  std::vector<pid_t> all;
  for (pid_t p : audit::family_of(c.pid))
    if (read_file("/proc/" + std::to_string(p) + "/cmdline").find(command) != std::string::npos)
      all.push_back(p);
  return all;
}
inline std::vector<pid_t> ranks_of(const running_cluster& c) {
  return processes_of(c, "rank-process");
}

/// Or nobody has asked yet how it ended.
inline bool is_gone(pid_t p) {
  auto stat = read_file("/proc/" + std::to_string(p) + "/stat");
  return stat.empty() || stat.substr(stat.rfind(')')).starts_with(") Z");
}

/// What is said in greedy words and in drawn ones, with the logits' traces in it.
inline std::vector<std::string> said_at(uint16_t port) {
  std::vector<std::string> all;
  for (std::string how : {R"("temperature":0)", R"("temperature":1,"seed":7)"}) {
    auto said = http_ask(
        port, "/v1/completions",
        R"({"model":"tiny","prompt":"A dog is a","max_tokens":40,"logprobs":3,)" + how + "}");
    EXPECT_EQ(said.status, 200) << said.body;
    // Not the id, nor the time.
    all.push_back(said.body.substr(said.body.find("\"choices\"")));
  }
  return all;
}

}  // namespace lethe

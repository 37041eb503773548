#pragma once

#include "actors/audit/embedded_cluster.hpp"
#include "runtime/audit/finding.hpp"

namespace lethe::audit {

struct no_trace_settings {
  embedded_settings cluster;
  std::filesystem::path controls;  // folder of programs without a defence each
  bool brief = false;              // fewer kinds of requests, for a quick look
  std::function<void(const std::string&)> progress = [](const std::string&) {};
};

/// After answers of each kind, and after each way in which a request can end, all memory, pipes and
/// files of all processes are searched for what was asked.
result<finding> measure_no_trace(const no_trace_settings& settings);

}  // namespace lethe::audit

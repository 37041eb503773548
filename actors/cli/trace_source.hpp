#pragma once

#include <CLI/CLI.hpp>

#include "runtime/trace/timeline.hpp"

namespace lethe {

/// Where records come from: a running cluster, or a recording.
struct trace_source {
  std::shared_ptr<std::string> cluster;
  std::string file;
};

std::shared_ptr<trace_source> add_trace_source(CLI::App& to);

/// Refuses where no process keeps records, and says how to have them kept.
result<timeline> load_timeline(const trace_source& source);

/// The exit code: that of `use`, or 1 after saying why there is nothing to use.
int with_timeline(const trace_source& source, const std::function<int(const timeline&)>& use);
int with_request(const trace_source& source, const std::string& id,
                 const std::function<int(const timeline&, const traced_request&)>& use);
int save_recording(const trace_source& source, const std::string& file);

}  // namespace lethe

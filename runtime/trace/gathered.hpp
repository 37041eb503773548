#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/trace/tracer.hpp"
#include "schemas/control.capnp.h"

namespace lethe {

/// What one process said when the directory asked for its records.
struct traced_process {
  std::string host;
  uint32_t pid = 0;
  trace_mode mode = trace_mode::off;
  uint64_t lost = 0;      // records that were overwritten, or did not fit
  uint64_t now_ns = 0;    // its clock when it answered; 0: it did not
  int64_t offset_ns = 0;  // added to its times they are the directory's
  uint64_t error_ns = 0;
  std::vector<trace_record> records;

  bool answered() const { return now_ns != 0; }
};

/// The records of a whole cluster.
struct gathered {
  uint64_t unix_ns = 0;  // when
  std::vector<traced_process> processes;
};

/// Refuses times that no clock shows, so that arithmetic on the rest cannot overflow.
result<gathered> gathered_from(capnp::List<schema::TraceRecords>::Reader from, uint64_t unix_ns);

/// A recording: the records of a cluster in a file that only its owner reads.
result<void> write_recording(const std::filesystem::path& path, const gathered& all);
result<gathered> read_recording(const std::filesystem::path& path);

}  // namespace lethe

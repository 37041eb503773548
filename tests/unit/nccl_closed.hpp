#pragma once

#include <cstdlib>

#include "parallel/nccl_environment.hpp"

namespace lethe::testing {

/// What this process's environment is closed with from here on, whatever lies in /etc: no library
/// that stands for NCCL reads that.
inline nccl_pins closed_environment(nccl_staging staging) {
  nccl_pins pins{.interface = "lo", .staging = staging};
  if (!close_nccl_environment(pins, "/nonexistent/nccl.conf")) std::abort();
  return pins;
}

}  // namespace lethe::testing

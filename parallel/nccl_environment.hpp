#pragma once

#include <map>
#include <string>
#include <string_view>

#include "runtime/base/result.hpp"

namespace lethe {

/// The memory of NCCL's own through which collectives pass data: of each channel, to each peer.
struct nccl_staging {
  uint32_t channels = 16;
  size_t bytes = size_t{4} << 20;

  /// Of a way on one channel: beside these NCCL makes the buffers of its two other protocols, of
  /// its own sizes (8 steps of 512 threads by 8 lines of 16 bytes, and of 640 by 120 words),
  /// though nothing goes through them.
  size_t way_bytes() const { return bytes + 8 * 512 * 8 * 16 + 8 * 640 * 120 * 8; }
};

/// What a rank lets NCCL choose: nothing that could differ from run to run, load code, listen, or
/// write files.
struct nccl_pins {
  std::string interface;  // of this host, over which ranks of several hosts find each other
  nccl_staging staging;
};

/// All that NCCL is told by its environment.
result<std::map<std::string, std::string>> nccl_environment(const nccl_pins& pins);

/// Whether NCCL, or what it brings along, may read it.
bool is_nccl_variable(std::string_view name);

/// Leaves of all that NCCL may read what nccl_environment() says. Before the library is loaded,
/// and before this process has a second thread. NCCL reads `site_file` whatever it is told, so
/// there must be none.
result<void> close_nccl_environment(const nccl_pins& pins,
                                    const char* site_file = "/etc/nccl.conf");

/// That the environment is still so. NCCL writes into it what it finds in its files.
result<void> check_nccl_environment(const nccl_pins& pins);

}  // namespace lethe

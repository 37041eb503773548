#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/config/cluster_config.hpp"

namespace lethe {

/// What the machine that reads the file has, for hosts that don't say.
struct machine {
  uint32_t cores = 1;
  uint64_t memory = 0;
  bool tensor_arithmetic = false;  // its cores have tiles for it
  bool pairs_arithmetic = false;

  static machine here();
};

/// A host with its blanks filled in.
struct placed_host {
  std::string name, address;
  uint32_t cores = 0;
  std::vector<std::string> devices;
  uint64_t memory = 0, device_memory = 0;  // of one device
  bool cores_given = false;
};

/// Where one rank of one engine runs: a device, or `threads` cores of its host.
struct placed_rank {
  uint32_t engine = 0, stage = 0, tensor_rank = 0;
  uint32_t host = 0;
  std::string device;  // none: cores
  uint32_t threads = 0;

  bool on_device() const { return !device.empty(); }
};

/// What would run where.
struct cluster_layout {
  std::vector<placed_host> hosts;
  std::vector<placed_rank> ranks;  // engine by engine, stage by stage, rank by rank
  std::vector<std::string> notes;  // allowed, but worth knowing
};

/// The 3 of "cuda:3".
std::optional<uint32_t> device_number(std::string_view name);

/// Places every rank of as many engines as there may be, a pure function of its arguments; where
/// the load decides how many there are, the first of them are. Problems are added to the config:
/// a host named twice, too few devices, an unknown place.
cluster_layout lay_out(cluster_config& config, const machine& here);

/// What to say where a host's ranks take more threads than a machine has cores.
std::optional<std::string> shared_cores(const cluster_layout& layout, std::string_view host,
                                        const machine& here);

}  // namespace lethe

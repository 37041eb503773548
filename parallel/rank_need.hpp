#pragma once

#include "parallel/device_room.hpp"

namespace lethe {

/// What one rank keeps in memory: its host's, or its device's.
struct rank_need {
  uint64_t weights = 0, kv = 0;
  // On a device alone.
  uint64_t steps = 0;    // what steps are told, compute in and pass each other
  uint64_t graphs = 0;   // an estimate, as are the next two
  uint64_t nccl = 0;     // buffers of its own
  uint64_t context = 0;  // what the driver takes

  uint64_t all() const { return weights + kv + steps + graphs + nccl + context; }
};

/// Measured on no GPU; others found 10 KiB with CUDA 12, 64 KiB with CUDA 11.
inline constexpr uint64_t graph_node_bytes = uint64_t{16} << 10;
/// A context (half a GiB), the code of kernels and of NCCL, its groups, and what blocks are rounded
/// up by.
inline constexpr uint64_t device_context_bytes = uint64_t{768} << 20;

/// Of a rank that is made with such a config: weights, keys and values, and steps are the bytes
/// that device_weights and device_shard take. Weights need no memory.
rank_need device_need(const model_weights& weights, const shard_config& config, arithmetic how);

/// Kernels and calls of NCCL in all graphs of a rank.
uint64_t graph_nodes(const model_weights& weights, const shard_part& part, const device_room& room);
/// Ways on which a rank gets something by NCCL, or gives something.
uint32_t nccl_ways(const shard_part& part);

}  // namespace lethe

#pragma once

#include <optional>

#include "kernels/cuda/cuda_row.hpp"
#include "parallel/cut.hpp"
#include "runtime/config/layout.hpp"
#include "runtime/model/inspect.hpp"

namespace lethe {

/// What one rank keeps in memory.
struct rank_need {
  uint64_t weights = 0, kv = 0;
  uint64_t work = 0;  // on a device: what steps compute in, and what its driver takes

  uint64_t all() const { return weights + kv + work; }
};

/// What a device's driver, graphs and NCCL's buffers are taken to need. A guess until devices have
/// been looked at.
inline constexpr uint64_t device_reserve = uint64_t{1} << 30;

/// A rank's share of the weights by its part of the cut, and its key/value pool: kv_memory, or room
/// for one longest request (at least 256 MiB). `on_device`: how it computes there.
rank_need need_of(const model_facts& model, const shard_part& part,
                  schema::Batching::Reader batching, std::optional<arithmetic> on_device);

}  // namespace lethe

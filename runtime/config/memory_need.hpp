#pragma once

#include "parallel/cut.hpp"
#include "runtime/config/layout.hpp"
#include "runtime/model/inspect.hpp"

namespace lethe {

/// What one rank keeps in memory.
struct rank_need {
  uint64_t weights = 0, kv = 0;
};

/// A rank's share of the weights by its part of the cut, and its key/value pool: kv_memory, or room
/// for one longest request (at least 256 MiB).
rank_need need_of(const model_facts& model, const shard_part& part,
                  schema::Batching::Reader batching);

}  // namespace lethe

#pragma once

#include "runtime/batch/engine.hpp"
#include "schemas/config.capnp.h"

namespace lethe {

/// What a cluster's file, or an engine's order, says of an engine.
inline engine_config engine_config_of(schema::Engines::Reader e, schema::Batching::Reader b,
                                      schema::Model::Reader m) {
  constexpr kv_type kv[] = {kv_type::f32, kv_type::bf16, kv_type::int8};
  return {.ranks = {e.getTensor(), e.getPipeline()},
          .kv = kv[std::min(size_t(b.getKv()), std::size(kv) - 1)],
          .page_tokens = b.getPageTokens(),
          .kv_bytes = b.getKvMemory(),
          .context = m.getContext(),
          .step_tokens = b.getStepTokens(),
          .chunk_tokens = b.getChunkTokens(),
          .running = b.getRunning(),
          .queue = b.getQueue(),
          .default_max_tokens = b.getDefaultMaxTokens()};
}

}  // namespace lethe

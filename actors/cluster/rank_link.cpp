#include "actors/cluster/rank_link.hpp"

#include <thread>

namespace lethe {

rank_link link_of(schema::EngineSpec::Reader spec, const grid_config& config, uint32_t rank,
                  key_bytes secret) {
  const uint32_t ranks = config.ranks.tensor * config.ranks.pipeline;
  const bool spin = ranks * config.threads <= std::max(1u, std::thread::hardware_concurrency());
  return {.base = {.epoch = spec.getEpoch(),
                   .group = fmt::format("engine {}", spec.getSlot()),
                   .rank = rank,
                   .size = ranks,
                   .secret = std::move(secret),
                   .timeout = std::chrono::milliseconds(spec.getHealth().getRankMs()),
                   .spin = spin},
          .spin = spin};
}

}  // namespace lethe

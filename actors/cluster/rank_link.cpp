#include "actors/cluster/rank_link.hpp"

#include <thread>

#include "actors/cluster/rank_line.hpp"

namespace lethe {

std::vector<uint32_t> ranks_beside(schema::EngineSpec::Reader spec, uint32_t rank) {
  std::vector<uint32_t> all;
  auto places = spec.getPlaces();
  for (uint32_t r = 0; r < places.size(); ++r)
    if (places[r].getHost() == places[rank].getHost()) all.push_back(r);
  return all;
}

model_share share_beside(schema::EngineSpec::Reader spec, uint32_t rank) {
  auto e = spec.getEngines();
  return {.ranks = {e.getTensor(), e.getPipeline()}, .of = ranks_beside(spec, rank)};
}

result<rank_link> link_of(schema::EngineSpec::Reader spec, const grid_config& config, uint32_t rank,
                          key_bytes secret) {
  const uint32_t ranks = config.ranks.tensor * config.ranks.pipeline;
  auto places = spec.getPlaces();
  if (places.size() != ranks || rank >= ranks)
    return fail("ranks: engine {} has {} places for {} ranks", spec.getSlot(), places.size(),
                ranks);
  auto address = numeric_address(places[rank].getAddress().cStr());
  if (!address) return address.why();
  const bool spin = ranks_beside(spec, rank).size() * config.threads <=
                    std::max(1u, std::thread::hardware_concurrency());
  return rank_link{.base = {.epoch = spec.getEpoch(),
                            .group = fmt::format("engine {}", spec.getSlot()),
                            .rank = rank,
                            .size = ranks,
                            .secret = std::move(secret),
                            .address = *std::move(address),
                            .protected_link = spec.getEngines().getLinks() == schema::Links::CLEAR,
                            .timeout = std::chrono::milliseconds(spec.getHealth().getRankMs()),
                            .spin = spin},
                   .spin = spin};
}

}  // namespace lethe

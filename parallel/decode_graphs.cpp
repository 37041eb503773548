#include "parallel/decode_graphs.hpp"

#include <algorithm>

namespace lethe {

decode_graphs::~decode_graphs() {
  for (device_graph g : all_) on_.free(g);
}

device_error decode_graphs::make(device_stage& stage, uint32_t decodes_max, uint32_t tiles_max) {
  tile_buckets_ = bucket_of(tiles_max) + 1;
  for (uint32_t i = 0; i <= bucket_of(decodes_max); ++i)
    for (uint32_t j = 0; j < tile_buckets_; ++j) {
      uint32_t decodes = std::min(1u << i, decodes_max);
      run_counts runs{.decodes = decodes, .longest = 1, .tiles = std::min(1u << j, tiles_max)};
      device_graph made = nullptr;
      if (device_error e = on_.begin_graph()) return e;
      device_error queued = stage.queue(
          {.tokens = decodes, .logit_rows = decodes, .runs = runs, .last = runs, .kept = {}});
      device_error ended = on_.end_graph(made);
      if (made != nullptr) all_.push_back(made);
      if (queued != 0 || ended != 0) return queued != 0 ? queued : ended;
    }
  decodes_max_ = decodes_max;
  return 0;
}

device_error decode_graphs::queue(uint32_t places, uint32_t tiles) {
  return on_.queue(all_[bucket_of(places) * tile_buckets_ + bucket_of(tiles)]);
}

}  // namespace lethe

#include "parallel/decode_graphs.hpp"

#include <algorithm>

namespace lethe {

namespace {

step_form form_of(uint32_t decodes, uint32_t tiles) {
  run_counts runs{.decodes = decodes, .longest = 1, .tiles = tiles};
  return {.tokens = decodes, .logit_rows = decodes, .runs = runs, .last = runs, .kept = {}};
}

}  // namespace

decode_graphs::~decode_graphs() {
  for (device_graph g : all_) on_.free(g);
}

device_error decode_graphs::make(device_stage& stage, uint32_t decodes_max, uint32_t tiles_max,
                                 bool talks) {
  const auto tile_buckets = buckets(tiles_max);
  tile_buckets_ = uint32_t(tile_buckets.size());
  for (uint32_t decodes : buckets(decodes_max)) {
    if (talks)
      if (device_error e = stage.queue(form_of(decodes, 1))) return e;
    for (uint32_t tiles : tile_buckets)
      if (device_error e = make_one(stage, decodes, tiles)) return e;
  }
  decodes_max_ = decodes_max;
  return 0;
}

std::vector<uint32_t> decode_graphs::buckets(uint32_t most) {
  std::vector<uint32_t> all;
  for (uint32_t i = 0; i <= bucket_of(most); ++i) all.push_back(std::min(1u << i, most));
  return all;
}

device_error decode_graphs::make_one(device_stage& stage, uint32_t decodes, uint32_t tiles) {
  device_graph made = nullptr;
  if (device_error e = on_.begin_graph()) return e;
  device_error queued = stage.queue(form_of(decodes, tiles));
  device_error ended = on_.end_graph(made);
  if (made != nullptr) all_.push_back(made);
  return queued != 0 ? queued : ended;
}

device_error decode_graphs::queue(uint32_t places, uint32_t tiles) {
  return on_.queue(all_[bucket_of(places) * tile_buckets_ + bucket_of(tiles)]);
}

}  // namespace lethe

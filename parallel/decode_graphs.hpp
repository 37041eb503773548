#pragma once

#include <bit>
#include <vector>

#include "parallel/device_stage.hpp"

namespace lethe {

/// A graph for each bucket of decodes and of the tiles that the longest of them sees: powers of
/// two, and the most there may be.
class decode_graphs {
 public:
  explicit decode_graphs(accelerator& on) : on_(on) {}
  decode_graphs(const decode_graphs&) = delete;
  ~decode_graphs();

  /// `talks`: with other ranks, which make the same graphs at the same time. NCCL wants to have
  /// been called in every shape before.
  device_error make(device_stage& stage, uint32_t decodes_max, uint32_t tiles_max, bool talks);
  /// How many sequences the graph for so many is made for; 0: there is none.
  uint32_t places_for(uint32_t decodes) const {
    return decodes > decodes_max_ ? 0 : std::min(std::bit_ceil(decodes), decodes_max_);
  }
  device_error queue(uint32_t places, uint32_t tiles);
  /// What graphs are made for, of decodes or of tiles: 1, 2, 4 ... and the most.
  static std::vector<uint32_t> buckets(uint32_t most);
  uint32_t count() const { return uint32_t(all_.size()); }

 private:
  device_error make_one(device_stage& stage, uint32_t decodes, uint32_t tiles);
  /// Of the least bucket that holds n: 1, 2, 4 ...
  static uint32_t bucket_of(uint32_t n) { return uint32_t(std::bit_width(n - 1)); }

  accelerator& on_;
  uint32_t decodes_max_ = 0, tile_buckets_ = 0;
  std::vector<device_graph> all_;  // [bucket of decodes][bucket of tiles]
};

}  // namespace lethe

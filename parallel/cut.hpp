#pragma once

#include <algorithm>
#include <cstdint>

#include "parallel/weights.hpp"
#include "runtime/base/result.hpp"

namespace lethe {

/// How many ways a model is cut: tensor ranks share each layer, pipeline stages share the layers.
struct cut {
  uint32_t tensor = 1, pipeline = 1;
};

/// Half-open range.
struct range {
  uint32_t begin = 0, end = 0;
  constexpr uint32_t size() const { return end - begin; }
};

/// Part `i` of `n` of [0, total): equal where n divides it, else as even as can be.
constexpr range part_of(uint32_t total, uint32_t i, uint32_t n) {
  return {uint32_t(uint64_t{total} * i / n), uint32_t(uint64_t{total} * (i + 1) / n)};
}

/// The same on whole panels of rows, so that no two parts read the same panel.
constexpr range panels_of(uint32_t rows, uint32_t i, uint32_t n) {
  range panels = part_of((rows + panel_rows - 1) / panel_rows, i, n);
  return {std::min(rows, panels.begin * panel_rows), std::min(rows, panels.end * panel_rows)};
}

/// No part of `total`, cut into n on whole units, is wider.
constexpr uint32_t widest_part(uint32_t total, uint32_t unit, uint32_t n) {
  return ((total + unit - 1) / unit + n - 1) / n * unit;
}

/// Ranks of one grid at most.
inline constexpr uint32_t ranks_max = 256;

/// One rank's share of the model.
struct shard_part {
  uint32_t tensor_rank, tensor_size, stage, stages;
  range layers;
  range heads;     // query heads
  range kv_heads;  // what `heads` look at; two ranks may hold the same one
  range ffn;       // rows of gate and up
  range vocab;
  bool first() const { return stage == 0; }
  bool last() const { return stage + 1 == stages; }
};

/// Says why a cut does not fit: heads that don't divide, more stages than layers.
result<void> check_cut(const model_shape& shape, const cut& c);
/// The share of one rank; the cut must have passed check_cut.
shard_part part_for(const model_shape& shape, const cut& c, uint32_t stage, uint32_t tensor_rank);

}  // namespace lethe

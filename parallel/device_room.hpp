#pragma once

#include <algorithm>

#include "parallel/accelerator.hpp"
#include "parallel/shard.hpp"

namespace lethe {

/// What a step is told, laid out the same in pinned memory and on the device: by its number of
/// rows, one behind the other, so that one copy brings all.
struct device_inputs {
  uint32_t* ids;         // [tokens]
  token_run* runs;       // decodes first, then the longer ones
  token_run* last_runs;  // the same of the queries that become logits
  float *cosines, *sines;
  row_draw* draws;  // of rows that become logits
  uint32_t* pages;  // the plan's tables; last, for they are the plan's, not the request's
};

/// The activations of a step on a device, [rows][columns], rows back to back.
struct device_buffers {
  float* x[2];  // the residual stream, by turns
  float* kept;  // the same, of the tokens that become logits
  float *normed, *q, *k, *v, *attended, *gate, *up;
  float* wide;  // what o or down reads where its K is not cut among ranks
  int8_t* quants;
  float* scales;
  int16_t* sums;
  float* logits;
  float* scores;          // of decodes, and what their spans have
  float* draw_weights;    // of draws that are made at once
  uint32_t* draw_places;  // the same
  uint32_t* drawn;        // [logit_rows]
};

/// Tiles that a window can lie in, of so many at most; a window of 0 sees all.
constexpr uint32_t tiles_in(uint32_t window, uint32_t most) {
  return window == 0 ? most
                     : std::min(most, (window - 1 + attention_tile - 1) / attention_tile + 1);
}

/// How much room a shard's steps take.
struct device_room {
  size_t tokens, logit_rows;
  size_t hidden, q, kv, ffn, wide, pairs;  // of this rank's part
  size_t vocab;                            // columns of the logits; 0: they are another rank's
  size_t draws;                            // that are made at once
  size_t shared_floats;  // that ranks pass each other at once; the same on every rank
  size_t table_pages;    // of one sequence at most
  uint32_t tiles;        // that the longest context has
  size_t score_floats;   // of decodes that are computed at once: their scores and spans
  arithmetic how;
  uint32_t heads, head_dim;  // of this rank's part

  /// `score_tiles`: whose scores there is room for at once, in all heads, and what is made of them.
  static device_room of(const model_weights& weights, const shard_config& config, arithmetic how,
                        size_t score_tiles);
  size_t pages() const { return tokens * table_pages; }
  /// Decodes over so many tiles whose scores there is room for.
  size_t decodes_at_once(uint32_t tiles_max) const {
    return score_floats / decode_scratch_floats(how, 1, heads, head_dim, tiles_max);
  }

  size_t inputs_bytes() const;
  size_t buffers_bytes() const;
  /// Of NCCL's memory, which comes in whole pages.
  size_t shared_bytes() const;
  device_inputs inputs_at(std::byte* at, size_t rows) const;
  device_buffers buffers_at(std::byte* at) const;
};

}  // namespace lethe

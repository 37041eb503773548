#pragma once

#include <algorithm>

#include "bench/gpu/device_probe.hpp"
#include "bench/model_work.hpp"

// Of what a device could do at best, which part a model's step did.

namespace lethe::bench {

/// In one second.
struct device_limits {
  double bytes = 0;  // read and written
  double bf16_ops = 0, int8_ops = 0;
};

/// The better of what was measured, lest a weak probe flatter. Bytes go through tensor cores at
/// twice the rate of bf16.
inline device_limits limits_of(double copy_bytes_per_s, const matrix_peaks& p) {
  double bf16 = std::max(p.bf16, p.bf16_cublaslt);
  return {copy_bytes_per_s, bf16, std::max(p.int8, 2 * bf16)};
}

/// The better of two copies, before and after; far apart, nothing is claimed.
struct copy_rates {
  double before = 0, after = 0;
  double better() const { return std::max(before, after); }
  bool steady() const { return better() <= 1.5 * std::min(before, after); }
};

/// What a step of `streams` sequences reads, of which each sees `seen` tokens, its own included.
inline double decode_bytes(const model_weights& w, kv_type kv, double streams, double seen) {
  return weight_bytes(w) + streams * seen * kv_token_bytes(w.shape, kv);
}

/// Seconds that a prompt's arithmetic takes at least: one prompt from its beginning, of which one
/// token is answered. Attention multiplies in bf16.
inline double prompt_seconds(const model_weights& w, const device_limits& most, double tokens) {
  model_work work = work_of(w, tokens, 1);
  work.attention_ops = attention_ops(w.shape, tokens * (tokens + 1) / 2, w.shape.layers - 1.0) +
                       attention_ops(w.shape, tokens, 1);
  return work.int8_ops / most.int8_ops + (work.float_ops + work.attention_ops) / most.bf16_ops;
}

}  // namespace lethe::bench

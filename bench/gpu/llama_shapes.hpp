#pragma once

#include "parallel/shape.hpp"

namespace lethe::bench {

/// What two sizes of the Llama 3 family share.
inline model_shape llama_shape(uint32_t layers, uint32_t hidden, uint32_t head_dim, uint32_t ffn) {
  model_shape s;
  s.family = "llama";
  s.layers = layers, s.hidden = hidden, s.head_dim = head_dim, s.ffn = ffn;
  s.heads = hidden / head_dim, s.kv_heads = 8;
  s.vocab = 128256, s.context_max = 8192;
  s.rope.theta = 500000, s.rope.rotary = head_dim;
  return s;
}

/// Llama-3.2-1B's.
inline model_shape shape_1b() {
  model_shape s = llama_shape(16, 2048, 64, 8192);
  s.tied = true;
  return s;
}
/// Llama-3.1-8B's.
inline model_shape shape_8b() { return llama_shape(32, 4096, 128, 14336); }

}  // namespace lethe::bench

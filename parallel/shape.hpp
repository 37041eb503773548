#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lethe {

enum class rope_scaling : uint8_t { none, linear, llama3, yarn };

struct rope_shape {
  double theta = 10000;
  uint32_t rotary = 0;  // dimensions of a head that turn; head_dim unless partial
  rope_scaling scaling = rope_scaling::none;
  double factor = 1;
  uint32_t original_context = 0;                     // llama3, yarn
  double low_freq_factor = 1, high_freq_factor = 4;  // llama3
  double beta_fast = 32, beta_slow = 1;              // yarn
  double attention_factor = 0;                       // yarn; 0: 0.1 ln(factor) + 1
  bool truncate = true;                              // yarn: round the correction range
  std::vector<float> factors;                        // GGUF's rope_freqs: divides each frequency
};

/// The numbers of a decoder-only transformer, whatever file they came from.
struct model_shape {
  std::string family;  // llama, mistral, qwen2, qwen3
  uint32_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn = 0, vocab = 0;
  uint32_t context_max = 0;
  float norm_eps = 1e-5f;
  rope_shape rope;
  std::vector<uint32_t> window;  // per layer; 0: sees everything before it
  bool qkv_bias = false, o_bias = false, mlp_bias = false, qk_norm = false;
  bool tied = false;
};

/// Per rotating pair: radians per position.
std::vector<double> rope_frequencies(const rope_shape& rope);
/// What cosines and sines are multiplied with (yarn), else 1.
double rope_magnitude(const rope_shape& rope);

}  // namespace lethe

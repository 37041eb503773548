#include "runtime/model/convert_shape.hpp"

#include <algorithm>
#include <cmath>

namespace lethe {

namespace {

uint32_t file_type_of(dtype type) {
  constexpr uint32_t numbers[dtype_count] = {0, 1, 32, 7, 2, 3, 8, 9, 14, 16, 18};
  return numbers[uint8_t(type)];
}

void add_rope(const rope_shape& r, const std::string& prefix, gguf_header& header) {
  header.add(prefix + "rope.dimension_count", r.rotary);
  header.add(prefix + "rope.freq_base", float(r.theta));
  if (r.scaling != rope_scaling::linear && r.scaling != rope_scaling::yarn) return;
  bool yarn = r.scaling == rope_scaling::yarn;
  header.add(prefix + "rope.scaling.type", yarn ? "yarn" : "linear");
  header.add(prefix + "rope.scaling.factor", float(r.factor));
  if (!yarn) return;
  header.add(prefix + "rope.scaling.original_context_length", r.original_context);
  if (r.beta_fast != 32) header.add(prefix + "rope.scaling.yarn_beta_fast", float(r.beta_fast));
  if (r.beta_slow != 1) header.add(prefix + "rope.scaling.yarn_beta_slow", float(r.beta_slow));
  // GGUF multiplies with what follows from the stretch.
  double own = r.factor <= 1 ? 1 : 0.1 * std::log(r.factor) + 1;
  if (r.attention_factor != 0 && r.attention_factor != own)
    header.add(prefix + "rope.scaling.attn_factor", float(r.attention_factor / own));
}

void add_windows(const model_shape& s, const std::string& prefix, gguf_header& header) {
  uint32_t window = s.window.empty() ? 0 : *std::max_element(s.window.begin(), s.window.end());
  if (window == 0) return;
  header.add(prefix + "attention.sliding_window", window);
  std::vector<bool> has;
  for (uint32_t w : s.window) has.push_back(w != 0);
  if (std::find(has.begin(), has.end(), false) != has.end())
    header.add(prefix + "attention.sliding_window_pattern", has);
}

}  // namespace

void add_general(std::string_view architecture, std::string_view name, dtype type,
                 gguf_header& header) {
  header.add("general.architecture", architecture);
  header.add("general.name", name);
  header.add("general.file_type", file_type_of(type));
  if (!is_float(type)) header.add("general.quantization_version", uint32_t{2});
}

void add_shape(const model_shape& s, std::string_view architecture, gguf_header& header) {
  std::string prefix = std::string(architecture) + ".";
  header.add(prefix + "block_count", s.layers);
  header.add(prefix + "context_length", s.context_max);
  header.add(prefix + "embedding_length", s.hidden);
  header.add(prefix + "feed_forward_length", s.ffn);
  header.add(prefix + "attention.head_count", s.heads);
  header.add(prefix + "attention.head_count_kv", s.kv_heads);
  header.add(prefix + "attention.layer_norm_rms_epsilon", s.norm_eps);
  header.add(prefix + "attention.key_length", s.head_dim);
  header.add(prefix + "attention.value_length", s.head_dim);
  add_rope(s.rope, prefix, header);
  header.add(prefix + "vocab_size", s.vocab);
  add_windows(s, prefix, header);
}

std::vector<float> rope_factors(const rope_shape& r) {
  if (r.scaling != rope_scaling::llama3) return {};
  rope_shape plain = r;
  plain.scaling = rope_scaling::none;
  auto from = rope_frequencies(plain), to = rope_frequencies(r);
  std::vector<float> factors(from.size());
  for (size_t i = 0; i < from.size(); ++i) factors[i] = float(from[i] / to[i]);
  return factors;
}

}  // namespace lethe

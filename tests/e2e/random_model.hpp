#pragma once

// Writes a Hugging Face folder with random weights, and gives the same numbers to the oracle.

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "tests/e2e/oracle.hpp"

namespace oracle {

struct recipe {
  std::string family = "llama";  // model_type
  uint32_t layers = 2, hidden = 64, heads = 4, kv_heads = 2, head_dim = 0, ffn = 128, vocab = 160;
  uint32_t context = 512, window = 0, window_from_layer = 0;
  bool tied = false, qkv_bias = false, qk_norm = false;
  double eps = 1e-5;
  rope_rule rope;
  bool rope_parameters = false;  // the rope's numbers as newer configs have them, in one object
  std::string dtype = "F32";     // F32, BF16, F16
  uint32_t seed = 1;
};

inline uint16_t to_bf16(float v) {
  uint32_t bits = std::bit_cast<uint32_t>(v);
  return uint16_t((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
inline float from_bf16(uint16_t v) { return std::bit_cast<float>(uint32_t{v} << 16); }

class folder_writer {
 public:
  folder_writer(const recipe& r, std::filesystem::path to)
      : r_(r), to_(std::move(to)), random_(r.seed) {
    std::filesystem::create_directories(to_);
    if (r_.head_dim == 0) r_.head_dim = r_.hidden / r_.heads;
  }

  model write() {
    fill();
    write_weights();
    write_config();
    return made_;
  }

  /// As many words as the model has rows; none of them merge.
  void write_tokenizer() const {
    std::string vocab;
    for (uint32_t i = 0; i < r_.vocab; ++i)
      vocab += fmt::format("{}\"t{}\":{}", i ? "," : "", i, i);
    std::ofstream(to_ / "tokenizer.json")
        << "{\"model\":{\"type\":\"BPE\",\"vocab\":{" << vocab
        << "},\"merges\":[]},\"added_tokens\":[],\"normalizer\":null,\"post_processor\":null,"
           "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
           "\"use_regex\":true},\"decoder\":{\"type\":\"ByteLevel\"}}";
  }

 private:
  void tensor(const std::string& name, uint32_t out, uint32_t in, double spread, double centre) {
    std::normal_distribution<float> draw{float(centre), float(spread)};
    row& values = made_.tensors[name];
    bool vector = in == 0;
    std::string data;
    for (size_t i = 0; i < size_t{out} * (vector ? 1 : in); ++i) {
      float v = draw(random_);
      if (r_.dtype == "F32") {
        data.append(reinterpret_cast<char*>(&v), 4);
      } else {
        uint16_t h = r_.dtype == "BF16" ? to_bf16(v) : std::bit_cast<uint16_t>(_Float16(v));
        v = r_.dtype == "BF16" ? from_bf16(h) : float(std::bit_cast<_Float16>(h));
        data.append(reinterpret_cast<char*>(&h), 2);
      }
      values.push_back(v);
    }
    std::string full = name.starts_with("lm_head") ? name : "model." + name;
    header_ += fmt::format("{}\"{}\":{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                           header_.empty() ? "" : ",", full, r_.dtype,
                           vector ? fmt::format("{}", out) : fmt::format("{},{}", out, in),
                           data_.size(), data_.size() + data.size());
    data_ += data;
  }

  void fill() {
    made_.layers = r_.layers, made_.hidden = r_.hidden, made_.heads = r_.heads;
    made_.kv_heads = r_.kv_heads, made_.head_dim = r_.head_dim, made_.ffn = r_.ffn;
    made_.vocab = r_.vocab, made_.eps = r_.eps, made_.rope = r_.rope;
    made_.window = r_.window, made_.window_from_layer = r_.window_from_layer;
    tensor("embed_tokens.weight", r_.vocab, r_.hidden, 1, 0);
    uint32_t q = r_.heads * r_.head_dim, kv = r_.kv_heads * r_.head_dim;
    double in = 1 / std::sqrt(double(r_.hidden));
    for (uint32_t l = 0; l < r_.layers; ++l) {
      std::string at = fmt::format("layers.{}.", l);
      tensor(at + "input_layernorm.weight", r_.hidden, 0, 0.1, 1);
      tensor(at + "self_attn.q_proj.weight", q, r_.hidden, 2 * in, 0);
      tensor(at + "self_attn.k_proj.weight", kv, r_.hidden, 2 * in, 0);
      tensor(at + "self_attn.v_proj.weight", kv, r_.hidden, in, 0);
      tensor(at + "self_attn.o_proj.weight", r_.hidden, q, 1 / std::sqrt(double(q)), 0);
      if (r_.qkv_bias) {
        tensor(at + "self_attn.q_proj.bias", q, 0, 0.5, 0);
        tensor(at + "self_attn.k_proj.bias", kv, 0, 0.5, 0);
        tensor(at + "self_attn.v_proj.bias", kv, 0, 0.5, 0);
      }
      if (r_.qk_norm) {
        tensor(at + "self_attn.q_norm.weight", r_.head_dim, 0, 0.1, 1);
        tensor(at + "self_attn.k_norm.weight", r_.head_dim, 0, 0.1, 1);
      }
      tensor(at + "post_attention_layernorm.weight", r_.hidden, 0, 0.1, 1);
      tensor(at + "mlp.gate_proj.weight", r_.ffn, r_.hidden, in, 0);
      tensor(at + "mlp.up_proj.weight", r_.ffn, r_.hidden, in, 0);
      tensor(at + "mlp.down_proj.weight", r_.hidden, r_.ffn, 1 / std::sqrt(double(r_.ffn)), 0);
    }
    tensor("norm.weight", r_.hidden, 0, 0.1, 1);
    if (!r_.tied) tensor("lm_head.weight", r_.vocab, r_.hidden, 2 * in, 0);
  }

  void write_weights() {
    std::string header = "{" + header_ + "}";
    header.resize((header.size() + 7) / 8 * 8, ' ');
    uint64_t size = header.size();
    std::ofstream out(to_ / "model.safetensors", std::ios::binary);
    out.write(reinterpret_cast<char*>(&size), 8);
    out << header << data_;
  }

  std::string rope_scaling() const {
    const auto& s = r_.rope;
    if (s.type.empty() && !r_.rope_parameters) return "null";
    std::string text = fmt::format("{{\"rope_type\":\"{}\",\"factor\":{}",
                                   s.type.empty() ? "default" : s.type, s.factor);
    if (r_.rope_parameters) text += fmt::format(",\"rope_theta\":{}", s.theta);
    if (s.original_context > 0)
      text += fmt::format(",\"original_max_position_embeddings\":{}", uint32_t(s.original_context));
    if (s.type == "llama3")
      text += fmt::format(",\"low_freq_factor\":{},\"high_freq_factor\":{}", s.low_freq_factor,
                          s.high_freq_factor);
    if (s.type == "yarn") {
      text += fmt::format(",\"beta_fast\":{},\"beta_slow\":{}", s.beta_fast, s.beta_slow);
      if (s.attention_factor > 0)
        text += fmt::format(",\"attention_factor\":{}", s.attention_factor);
    }
    return text + "}";
  }

  std::string rope() const {
    if (r_.rope_parameters) return fmt::format("\"rope_parameters\":{}", rope_scaling());
    return fmt::format("\"rope_theta\":{},\"rope_scaling\":{}", r_.rope.theta, rope_scaling());
  }

  void write_config() {
    std::string name = r_.family == "llama"     ? "LlamaForCausalLM"
                       : r_.family == "mistral" ? "MistralForCausalLM"
                       : r_.family == "qwen2"   ? "Qwen2ForCausalLM"
                                                : "Qwen3ForCausalLM";
    std::ofstream out(to_ / "config.json");
    out << fmt::format(
        "{{\"architectures\":[\"{}\"],\"model_type\":\"{}\",\"hidden_act\":\"silu\","
        "\"rms_norm_eps\":{},{},"
        "\"max_position_embeddings\":{},\"tie_word_embeddings\":{},\"hidden_size\":{},"
        "\"num_hidden_layers\":{},\"num_attention_heads\":{},\"num_key_value_heads\":{},"
        "\"head_dim\":{},\"intermediate_size\":{},\"vocab_size\":{}",
        name, r_.family, r_.eps, rope(), r_.context, r_.tied, r_.hidden, r_.layers, r_.heads,
        r_.kv_heads, r_.head_dim, r_.ffn, r_.vocab);
    if (r_.window > 0) out << fmt::format(",\"sliding_window\":{}", r_.window);
    if (r_.window > 0 && r_.family != "mistral")
      out << fmt::format(",\"use_sliding_window\":true,\"max_window_layers\":{}",
                         r_.window_from_layer);
    out << "}\n";
  }

  recipe r_;
  std::filesystem::path to_;
  std::mt19937 random_;
  model made_;
  std::string header_, data_;
};

}  // namespace oracle

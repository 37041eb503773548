#include "runtime/model/tensor_names.hpp"

#include <algorithm>
#include <charconv>

#include "runtime/base/check.hpp"
#include "runtime/base/limits.hpp"

namespace lethe {

namespace {

struct names {
  std::string_view own, hf, gguf;
};

constexpr names global_names[] = {
    {"embed", "model.embed_tokens.weight", "token_embd.weight"},
    {"head", "lm_head.weight", "output.weight"},
    {"norm", "model.norm.weight", "output_norm.weight"},
};

constexpr names layer_names[] = {
    {"attn_norm", "input_layernorm.weight", "attn_norm.weight"},
    {"q", "self_attn.q_proj.weight", "attn_q.weight"},
    {"k", "self_attn.k_proj.weight", "attn_k.weight"},
    {"v", "self_attn.v_proj.weight", "attn_v.weight"},
    {"o", "self_attn.o_proj.weight", "attn_output.weight"},
    {"q_bias", "self_attn.q_proj.bias", "attn_q.bias"},
    {"k_bias", "self_attn.k_proj.bias", "attn_k.bias"},
    {"v_bias", "self_attn.v_proj.bias", "attn_v.bias"},
    {"o_bias", "self_attn.o_proj.bias", "attn_output.bias"},
    {"q_norm", "self_attn.q_norm.weight", "attn_q_norm.weight"},
    {"k_norm", "self_attn.k_norm.weight", "attn_k_norm.weight"},
    {"ffn_norm", "post_attention_layernorm.weight", "ffn_norm.weight"},
    {"gate", "mlp.gate_proj.weight", "ffn_gate.weight"},
    {"up", "mlp.up_proj.weight", "ffn_up.weight"},
    {"down", "mlp.down_proj.weight", "ffn_down.weight"},
    {"gate_bias", "mlp.gate_proj.bias", "ffn_gate.bias"},
    {"up_bias", "mlp.up_proj.bias", "ffn_up.bias"},
    {"down_bias", "mlp.down_proj.bias", "ffn_down.bias"},
};

constexpr names prefixes = {"layers.", "model.layers.", "blk."};

/// "PREFIX" number "." rest; the number is written the one usual way.
struct layer_name {
  uint32_t layer;
  std::string_view rest;
};

std::optional<layer_name> split_layer(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  uint32_t layer = 0;
  auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), layer);
  size_t digits = size_t(end - name.data());
  if (failed != std::errc() || layer >= limits::layers_max) return std::nullopt;
  if (digits > 1 && name[0] == '0') return std::nullopt;
  if (digits == name.size() || name[digits] != '.') return std::nullopt;
  return layer_name{layer, name.substr(digits + 1)};
}

using column = std::string_view names::*;

std::optional<std::string> translate(std::string_view name, column from, column to) {
  for (const auto& n : global_names)
    if (n.*from == name) return std::string(n.*to);
  auto split = split_layer(name, prefixes.*from);
  if (!split) return std::nullopt;
  for (const auto& n : layer_names)
    if (n.*from == split->rest)
      return std::string(prefixes.*to) + std::to_string(split->layer) + "." + std::string(n.*to);
  return std::nullopt;
}

std::string known_name(std::string_view own, column to) {
  auto there = translate(own, &names::own, to);
  check(there.has_value());
  return *std::move(there);
}

}  // namespace

std::optional<std::string> name_from_hf(std::string_view name) {
  return translate(name, &names::hf, &names::own);
}

std::optional<std::string> name_from_gguf(std::string_view name) {
  return translate(name, &names::gguf, &names::own);
}

std::string name_in_hf(std::string_view name) { return known_name(name, &names::hf); }

std::string name_in_gguf(std::string_view name) { return known_name(name, &names::gguf); }

bool is_derived_buffer(std::string_view name) {
  return name.ends_with(".rotary_emb.inv_freq") || name.ends_with(".attn_rot_embd.weight");
}

}  // namespace lethe

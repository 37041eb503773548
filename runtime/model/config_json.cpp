#include "runtime/model/config_json.hpp"

#include <algorithm>

#include "runtime/base/limits.hpp"
#include "runtime/model/byte_reader.hpp"
#include "runtime/model/shape_check.hpp"

namespace lethe {

namespace {

/// What a family has without saying it, and what its numbers are when config.json is silent.
struct family_rules {
  std::string_view family, architecture;
  uint32_t kv_heads;  // 0: as many as heads
  uint32_t head_dim;  // 0: hidden / heads
  uint32_t context;
  bool always_qkv_bias, qk_norm;
};

constexpr family_rules families[] = {
    {"llama", "LlamaForCausalLM", 0, 0, 2048, false, false},
    {"mistral", "MistralForCausalLM", 8, 0, 131072, false, false},
    {"qwen2", "Qwen2ForCausalLM", 32, 0, 32768, true, false},
    {"qwen3", "Qwen3ForCausalLM", 32, 128, 32768, false, true},
};

constexpr const char* supported_families =
    "llama (LlamaForCausalLM), mistral (MistralForCausalLM), qwen2 (Qwen2ForCausalLM), "
    "qwen3 (Qwen3ForCausalLM)";

const family_rules* rules_of(const config_fields& config) {
  auto type = config.text("model_type");
  auto architectures = config.texts("architectures");
  if (!type && architectures.empty()) {
    note(config.problems(), "{}model_type is missing; supported: {}", config.where(),
         supported_families);
    return nullptr;
  }
  auto found = std::find_if(std::begin(families), std::end(families), [&](const auto& f) {
    return type ? f.family == *type : f.architecture == architectures[0];
  });
  if (found == std::end(families)) {
    note(config.problems(), "{}{} \"{}\" is not supported; supported: {}", config.where(),
         type ? "model_type" : "architectures", printable(type ? *type : architectures[0]),
         supported_families);
    return nullptr;
  }
  if (!architectures.empty() && architectures[0] != found->architecture)
    note(config.problems(), "{}architectures \"{}\" is not supported for {}; supported: {}",
         config.where(), printable(architectures[0]), found->family, found->architecture);
  return &*found;
}

uint32_t kv_heads_of(const config_fields& config, const family_rules& rules, uint32_t heads) {
  if (config.is_null("num_key_value_heads")) return heads;
  bool divides = rules.kv_heads && heads % rules.kv_heads == 0;
  uint32_t otherwise = divides ? rules.kv_heads : heads;
  return config.u32("num_key_value_heads").value_or(otherwise);
}

uint32_t head_dim_of(const config_fields& config, const family_rules& rules, const model_shape& s) {
  if (auto given = config.u32("head_dim")) return *given;
  if (rules.head_dim && !config.is_null("head_dim")) return rules.head_dim;
  if (s.heads && s.hidden % s.heads)
    note(config.problems(),
         "{}hidden_size {} is no multiple of num_attention_heads {}, and head_dim is missing",
         config.where(), s.hidden, s.heads);
  return s.heads ? s.hidden / s.heads : 0;
}

void read_numbers(const config_fields& config, const family_rules& rules, model_shape& s) {
  s.family = rules.family;
  s.layers = config.required("num_hidden_layers");
  s.hidden = config.required("hidden_size");
  s.heads = config.required("num_attention_heads");
  s.ffn = config.required("intermediate_size");
  s.vocab = config.required("vocab_size");
  s.kv_heads = kv_heads_of(config, rules, s.heads);
  s.head_dim = head_dim_of(config, rules, s);
  s.context_max = config.u32("max_position_embeddings").value_or(rules.context);
  s.norm_eps = float(config.number("rms_norm_eps").value_or(1e-6));
  s.tied = config.boolean("tie_word_embeddings").value_or(false);
}

void read_biases(const config_fields& config, const family_rules& rules, model_shape& s) {
  bool attention = config.boolean("attention_bias").value_or(false);
  bool mlp = config.boolean("mlp_bias").value_or(false);
  // Only these two read the keys; elsewhere the tensors would contradict them anyway.
  bool reads_attention = s.family == "llama" || s.family == "qwen3";
  s.qkv_bias = rules.always_qkv_bias || (attention && reads_attention);
  s.o_bias = attention && reads_attention;
  s.mlp_bias = mlp && s.family == "llama";
  s.qk_norm = rules.qk_norm;
}

/// The window where a family has one, 0 where it sees everything.
uint32_t window_of(const config_fields& config, const model_shape& s) {
  if (s.family == "llama") return 0;
  if (s.family == "mistral") {
    if (config.is_null("sliding_window")) return 0;
    return config.u32("sliding_window").value_or(4096);
  }
  if (!config.boolean("use_sliding_window").value_or(false)) return 0;
  if (config.is_null("sliding_window")) return 0;
  return config.u32("sliding_window").value_or(4096);
}

void apply_layer_types(const config_fields& config, model_shape& s, uint32_t window) {
  auto types = config.texts("layer_types");
  if (types.size() != s.layers) {
    note(config.problems(), "{}layer_types has {} entries for {} layers", config.where(),
         types.size(), s.layers);
    return;
  }
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i] != "full_attention" && types[i] != "sliding_attention")
      return note(config.problems(),
                  "{}layer_types \"{}\" is not supported; supported: full_attention, "
                  "sliding_attention",
                  config.where(), printable(types[i]));
    if (types[i] == "sliding_attention" && window == 0)
      return note(config.problems(),
                  "{}layer_types says sliding_attention, but no sliding_window "
                  "is set",
                  config.where());
    s.window[i] = types[i] == "sliding_attention" ? window : 0;
  }
}

void read_windows(const config_fields& config, model_shape& s) {
  if (s.layers > limits::layers_max) return;
  uint32_t window = window_of(config, s);
  s.window.assign(s.layers, window);
  if (config.has("layer_types") && s.family != "llama") return apply_layer_types(config, s, window);
  if (s.family == "mistral" || window == 0) return;
  uint32_t full = config.u32("max_window_layers").value_or(28);
  for (uint32_t i = 0; i < std::min(full, s.layers); ++i) s.window[i] = 0;
}

/// What a family that we do not know says in the usual words, for display only.
void show_numbers(const config_fields& config, model_shape& s) {
  problem_list unheard;
  config_fields quiet(config.members(), config.where(), unheard);
  family_rules plain{.kv_heads = 0, .head_dim = 0, .context = 0};
  read_numbers(quiet, plain, s);
  read_rope(config, s);  // its scaling may not be supported either
  s.family = printable(quiet.text("model_type").value_or("unknown"));
}

}  // namespace

model_config read_config(std::string_view json, std::string_view where, problem_list& problems) {
  model_config made;
  simdjson::dom::parser parser;
  auto config = parse_config(parser, json, where, problems);
  if (!config) return made;
  const family_rules* rules = rules_of(*config);
  refuse_unsupported(*config);
  if (!rules) {
    show_numbers(*config, made.shape);
    return made;
  }
  made.known_family = true;
  read_numbers(*config, *rules, made.shape);
  read_biases(*config, *rules, made.shape);
  read_windows(*config, made.shape);
  read_rope(*config, made.shape);
  check_shape(made.shape, where, problems);
  made.defaults.eos_ids = config->ids("eos_token_id");
  made.defaults.bos_id = config->id("bos_token_id");
  made.defaults.pad_id = config->id("pad_token_id");
  return made;
}

}  // namespace lethe

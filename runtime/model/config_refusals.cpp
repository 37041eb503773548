#include "runtime/model/byte_reader.hpp"
#include "runtime/model/config_json.hpp"

namespace lethe {

namespace {

void refuse_quantization(const config_fields& config) {
  for (const char* key : {"quantization_config", "compression_config"}) {
    if (!config.has(key)) continue;
    auto quantization = config.object(key);
    auto method = quantization ? quantization->text("quant_method") : std::nullopt;
    note(config.problems(),
         "{}{} (quant_method \"{}\") is not supported; supported: f32, f16, bf16 folders, and GGUF "
         "files for quantized models",
         config.where(), key, printable(method.value_or("unknown")));
  }
}

void refuse_experts(const config_fields& config) {
  for (const char* key : {"num_local_experts", "num_experts", "n_routed_experts",
                          "num_experts_per_tok", "moe_intermediate_size"}) {
    if (config.has(key) && config.u32(key).value_or(1) > 0)
      note(config.problems(),
           "{}{}: mixture of experts is not supported; supported: dense feed-forward",
           config.where(), key);
  }
}

void refuse_activations(const config_fields& config) {
  for (const char* key : {"hidden_act", "hidden_activation"}) {
    auto act = config.text(key);
    // swish is the same function under its older name.
    if (act && *act != "silu" && *act != "swish")
      note(config.problems(), "{}{} \"{}\" is not supported; supported: silu", config.where(), key,
           printable(*act));
  }
}

/// Members that change the arithmetic and that these families do not have.
void refuse_foreign_arithmetic(const config_fields& config) {
  for (const char* key : {"attn_logit_softcapping", "final_logit_softcapping", "logit_scale",
                          "logits_scaling", "embedding_multiplier", "residual_multiplier",
                          "attention_multiplier", "query_pre_attn_scalar", "attention_chunk_size",
                          "no_rope_layers", "qk_layernorm", "use_qk_norm", "clip_qkv", "alibi"}) {
    auto value = config.find(key);
    if (value && !(value->is_bool() && !bool(*value)))
      note(config.problems(), "{}{} is not supported", config.where(), key);
  }
}

void refuse_other_inputs(const config_fields& config) {
  for (const char* key : {"text_config", "vision_config", "audio_config"})
    if (config.has(key))
      note(config.problems(),
           "{}{}: a model of several kinds of input is not supported; supported: text models",
           config.where(), key);
}

}  // namespace

void refuse_unsupported(const config_fields& config) {
  refuse_quantization(config);
  refuse_experts(config);
  refuse_activations(config);
  refuse_foreign_arithmetic(config);
  refuse_other_inputs(config);
}

}  // namespace lethe

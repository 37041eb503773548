#include <gtest/gtest.h>

#include <string>

#include "runtime/base/limits.hpp"
#include "runtime/model/config_json.hpp"

namespace lethe {
namespace {

/// A llama's config.json whose members a test replaces; an empty value leaves one out.
class config_text {
 public:
  config_text() {
    set("model_type", "\"llama\"").set("hidden_size", "64").set("num_hidden_layers", "2");
    set("num_attention_heads", "4").set("num_key_value_heads", "2").set("vocab_size", "512");
    set("intermediate_size", "128").set("max_position_embeddings", "512");
  }
  config_text& set(const std::string& key, const std::string& value) {
    for (auto& [k, v] : members_)
      if (k == key) return v = value, *this;
    members_.emplace_back(key, value);
    return *this;
  }
  std::string json() const {
    std::string out = "{";
    for (const auto& [k, v] : members_) {
      if (v.empty()) continue;
      if (out.size() > 1) out += ",";
      out += "\"" + k + "\":" + v;
    }
    return out + "}";
  }

 private:
  std::vector<std::pair<std::string, std::string>> members_;
};

config_text with(const std::string& key, const std::string& value) {
  return config_text().set(key, value);
}

model_shape accepted(const config_text& text) {
  problem_list problems;
  auto made = read_config(text.json(), "config.json", problems);
  for (const auto& p : problems) ADD_FAILURE() << p;
  return made.shape;
}

std::string refused(const config_text& text) {
  problem_list problems;
  read_config(text.json(), "config.json", problems);
  std::string all;
  for (const auto& p : problems) all += p + "\n";
  return all;
}

#define EXPECT_REFUSED(text, part) \
  EXPECT_NE(refused(text).find(part), std::string::npos) << refused(text)

TEST(Config, ReadsALlama) {
  auto s = accepted(with("rms_norm_eps", "1e-5").set("rope_theta", "500000"));
  EXPECT_EQ(s.family, "llama");
  EXPECT_EQ(s.layers, 2u);
  EXPECT_EQ(s.head_dim, 16u);
  EXPECT_EQ(s.kv_heads, 2u);
  EXPECT_EQ(s.rope.theta, 500000.0);
  EXPECT_EQ(s.rope.rotary, 16u);
  EXPECT_EQ(s.norm_eps, 1e-5f);
  EXPECT_EQ(s.window, (std::vector<uint32_t>{0, 0}));
  EXPECT_FALSE(s.tied || s.qkv_bias || s.o_bias || s.mlp_bias || s.qk_norm);
}

TEST(Config, KnowsWhatEachFamilyHasWithoutSayingIt) {
  auto qwen2 = accepted(with("model_type", "\"qwen2\""));
  EXPECT_TRUE(qwen2.qkv_bias && !qwen2.o_bias && !qwen2.qk_norm);
  auto qwen3 = accepted(with("model_type", "\"qwen3\""));
  EXPECT_TRUE(qwen3.qk_norm && !qwen3.qkv_bias);
  EXPECT_EQ(qwen3.head_dim, 128u);
  EXPECT_EQ(accepted(with("model_type", "\"mistral\"")).window[0], 4096u);
  EXPECT_EQ(accepted(with("num_key_value_heads", "")).kv_heads, 4u);
  EXPECT_EQ(accepted(with("model_type", "\"mistral\"").set("num_key_value_heads", "null")).kv_heads,
            4u);
}

TEST(Config, TakesAHeadSizeOfItsOwn) {
  EXPECT_EQ(accepted(with("head_dim", "32")).head_dim, 32u);
  EXPECT_EQ(accepted(with("head_dim", "null")).head_dim, 16u);
  EXPECT_REFUSED(with("num_attention_heads", "6").set("num_key_value_heads", "6"),
                 "hidden_size 64 is no multiple of num_attention_heads 6, and head_dim is missing");
}

TEST(Config, ReadsBiases) {
  auto s = accepted(with("attention_bias", "true").set("mlp_bias", "true"));
  EXPECT_TRUE(s.qkv_bias && s.o_bias && s.mlp_bias);
}

TEST(Config, ReadsWindows) {
  auto mistral = with("model_type", "\"mistral\"").set("sliding_window", "100");
  EXPECT_EQ(accepted(mistral).window, (std::vector<uint32_t>{100, 100}));
  EXPECT_EQ(accepted(mistral.set("sliding_window", "null")).window[0], 0u);
  auto qwen = with("model_type", "\"qwen2\"").set("sliding_window", "100");
  EXPECT_EQ(accepted(qwen).window[1], 0u);
  qwen.set("use_sliding_window", "true").set("max_window_layers", "1");
  EXPECT_EQ(accepted(qwen).window, (std::vector<uint32_t>{0, 100}));
  qwen.set("layer_types", R"(["sliding_attention","full_attention"])");
  EXPECT_EQ(accepted(qwen).window, (std::vector<uint32_t>{100, 0}));
  EXPECT_REFUSED(qwen.set("layer_types", R"(["full_attention"])"), "1 entries for 2 layers");
  EXPECT_REFUSED(qwen.set("layer_types", R"(["full_attention","linear_attention"])"),
                 "layer_types \"linear_attention\" is not supported; supported: full_attention");
  // Llama has no window, whatever its file says.
  EXPECT_EQ(accepted(with("sliding_window", "100")).window[0], 0u);
}

TEST(ConfigRope, ReadsLlama3) {
  auto text = with("rope_scaling", R"({"rope_type":"llama3","factor":8,"low_freq_factor":1,
    "high_freq_factor":4,"original_max_position_embeddings":128})");
  auto r = accepted(text).rope;
  EXPECT_EQ(r.scaling, rope_scaling::llama3);
  EXPECT_EQ(r.factor, 8);
  EXPECT_EQ(r.original_context, 128u);
  EXPECT_REFUSED(with("rope_scaling", R"({"rope_type":"llama3","factor":8})"),
                 "rope_scaling.original_max_position_embeddings is missing");
  EXPECT_REFUSED(with("rope_scaling", R"({"rope_type":"llama3","factor":8,"low_freq_factor":4,
    "high_freq_factor":4,"original_max_position_embeddings":128})"),
                 "low_freq_factor 4 must be below high_freq_factor 4");
}

TEST(ConfigRope, ReadsYarn) {
  auto text = with("rope_scaling", R"({"type":"yarn","factor":4,
    "original_max_position_embeddings":512})");
  auto s = accepted(text);
  EXPECT_EQ(s.rope.scaling, rope_scaling::yarn);
  EXPECT_EQ(s.rope.original_context, 512u);
  EXPECT_EQ(s.context_max, 2048u);
  EXPECT_EQ(s.rope.attention_factor, 0);
  auto deep = accepted(with("rope_scaling", R"({"type":"yarn","factor":4,"mscale":1,
    "mscale_all_dim":1,"truncate":false,"beta_fast":16})"));
  EXPECT_EQ(deep.rope.attention_factor, 1);
  EXPECT_FALSE(deep.rope.truncate);
  EXPECT_EQ(deep.rope.beta_fast, 16);
  EXPECT_EQ(deep.rope.original_context, 512u);
}

TEST(ConfigRope, ReadsLinearAndNone) {
  EXPECT_EQ(accepted(with("rope_scaling", R"({"type":"linear","factor":2})")).rope.factor, 2);
  EXPECT_EQ(accepted(with("rope_scaling", R"({"rope_type":"default"})")).rope.scaling,
            rope_scaling::none);
  EXPECT_EQ(accepted(with("rope_scaling", "null")).rope.scaling, rope_scaling::none);
  EXPECT_EQ(accepted(with("partial_rotary_factor", "0.5")).rope.rotary, 8u);
}

TEST(ConfigRope, ReadsTheNewerSpelling) {
  auto text =
      with("rope_parameters",
           R"({"rope_type":"linear","factor":2,"rope_theta":7,"partial_rotary_factor":0.5})");
  auto r = accepted(text).rope;
  EXPECT_EQ(r.scaling, rope_scaling::linear);
  EXPECT_EQ(r.theta, 7);
  EXPECT_EQ(r.rotary, 8u);
}

TEST(ConfigRope, RefusesByName) {
  EXPECT_EQ(refused(with("rope_scaling", R"({"type":"dynamic","factor":2})")),
            "config.json: rope_scaling.type \"dynamic\" is not supported; supported: llama3, "
            "linear, yarn\n");
  EXPECT_REFUSED(with("rope_scaling", R"({"type":"linear","factor":2,"mrope_section":[1]})"),
                 "rope_scaling.mrope_section is not supported");
  EXPECT_REFUSED(with("rope_scaling", R"({"type":"linear"})"), "rope_scaling.factor is missing");
  EXPECT_REFUSED(with("rope_scaling", R"({"type":"linear","factor":0.5})"),
                 "factor is 0.5; it must be 1 or more");
  EXPECT_REFUSED(with("rope_theta", "0"), "rope theta is 0");
  EXPECT_REFUSED(with("partial_rotary_factor", "1.5"), "partial_rotary_factor is 1.5");
  EXPECT_REFUSED(with("partial_rotary_factor", "0.2"), "3 of 16 dimensions of a head turn");
}

TEST(Config, RefusesWhatIsNotSupportedByName) {
  EXPECT_REFUSED(with("model_type", "\"gpt2\""),
                 "model_type \"gpt2\" is not supported; supported: llama");
  EXPECT_REFUSED(with("architectures", R"(["LlamaForSequenceClassification"])"),
                 "architectures \"LlamaForSequenceClassification\" is not supported");
  EXPECT_REFUSED(with("hidden_act", "\"gelu\""),
                 "hidden_act \"gelu\" is not supported; supported: "
                 "silu");
  EXPECT_REFUSED(with("quantization_config", R"({"quant_method":"gptq"})"),
                 "quantization_config (quant_method \"gptq\") is not supported");
  EXPECT_REFUSED(with("num_local_experts", "8"), "num_local_experts: mixture of experts");
  EXPECT_REFUSED(with("final_logit_softcapping", "30.0"),
                 "final_logit_softcapping is not supported");
}

TEST(Config, RefusesOtherFamiliesAndOtherInputs) {
  for (const char* type : {"mixtral", "qwen3_moe", "qwen2_moe", "gemma2", "phi3", "llava",
                           "mistral3", "qwen2_5_vl", "deepseek_v3", "Llama"})
    EXPECT_REFUSED(with("model_type", "\"" + std::string(type) + "\""),
                   "model_type \"" + std::string(type) + "\" is not supported; supported: llama");
  EXPECT_REFUSED(with("architectures", R"(["Qwen2ForCausalLM"])"),
                 "architectures \"Qwen2ForCausalLM\" is not supported for llama; supported: Llama");
  EXPECT_REFUSED(with("vision_config", "{}"), "vision_config: a model of several kinds of input");
  EXPECT_REFUSED(with("model_type", "7"), "model_type must be a text");
}

TEST(Config, ShowsWhatAnUnknownFamilySays) {
  problem_list problems;
  auto made = read_config(with("model_type", "\"mixtral\"")
                              .set("rope_scaling", R"({"type":"dynamic","factor":2})")
                              .json(),
                          "config.json", problems);
  EXPECT_FALSE(made.known_family);
  EXPECT_EQ(made.shape.family, "mixtral");
  EXPECT_EQ(made.shape.layers, 2u);
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_NE(problems[1].find("\"dynamic\""), std::string::npos);
}

TEST(Config, TakesNumbersAsPythonWritesThem) {
  auto s = accepted(with("max_position_embeddings", "512.0")
                        .set("rope_theta", "1e6")
                        .set("rms_norm_eps", "0")
                        .set("model_max_length", "1000000000000000019884624838656"));
  EXPECT_EQ(s.context_max, 512u);
  EXPECT_EQ(s.rope.theta, 1e6);
  EXPECT_REFUSED(with("hidden_size", "64.5"), "hidden_size must be an integer");
  EXPECT_REFUSED(with("hidden_size", "1000000000000000019884624838656"), "must be an integer");
  EXPECT_REFUSED(with("hidden_size", "true"), "hidden_size must be an integer");
  EXPECT_REFUSED(with("hidden_size", "\"64\""), "hidden_size must be an integer");
  EXPECT_REFUSED(with("rope_theta", "\"10000\""), "rope_theta must be a finite number");
  EXPECT_REFUSED(with("rope_theta", "NaN"), "not a JSON object");
  EXPECT_REFUSED(with("rope_theta", "1e999"), "not a JSON object");
  EXPECT_REFUSED(with("tie_word_embeddings", "1"), "tie_word_embeddings must be true or false");
}

TEST(Config, TakesMinusOneAsNoToken) {
  problem_list problems;
  auto made = read_config(
      with("pad_token_id", "-1").set("bos_token_id", "null").set("eos_token_id", "[5,-1,6]").json(),
      "config.json", problems);
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(made.defaults.pad_id, std::nullopt);
  EXPECT_EQ(made.defaults.bos_id, std::nullopt);
  EXPECT_EQ(made.defaults.eos_ids, (std::vector<uint32_t>{5, 6}));
  EXPECT_REFUSED(with("pad_token_id", "-2"), "pad_token_id must be a token id");
}

TEST(Config, SharesKeysWhereAFamilysDefaultCannotDivide) {
  auto qwen = with("model_type", "\"qwen2\"").set("num_key_value_heads", "");
  EXPECT_EQ(accepted(qwen).kv_heads, 4u);
  EXPECT_EQ(accepted(qwen.set("num_attention_heads", "32")).kv_heads, 32u);
  auto mistral = with("model_type", "\"mistral\"").set("num_key_value_heads", "");
  EXPECT_EQ(accepted(mistral.set("num_attention_heads", "16")).kv_heads, 8u);
}

TEST(ConfigRope, RefusesNumbersThatGiveNoRotation) {
  auto yarn = [](const char* fast, const char* slow) {
    return with("rope_scaling", R"({"type":"yarn","factor":4,"beta_fast":)" + std::string(fast) +
                                    R"(,"beta_slow":)" + slow + "}");
  };
  accepted(yarn("32", "1"));
  EXPECT_REFUSED(yarn("1e-320", "1e-321"), "give no finite rotation");
  EXPECT_REFUSED(yarn("0", "0"), "beta_slow 0 must not be above");
  EXPECT_REFUSED(with("rope_scaling", R"({"factor":2})"), "rope_type is missing; supported");
  EXPECT_REFUSED(with("rope_parameters", R"({"full_attention":{"rope_type":"default"}})"),
                 "rope_parameters.full_attention is not supported");
  for (const char* type : {"su", "longrope", "dynamic", "mrope", ""})
    EXPECT_REFUSED(with("rope_scaling", R"({"rope_type":")" + std::string(type) + "\"}"),
                   "is not supported; supported: llama3, linear, yarn");
}

TEST(Config, ListsAllProblems) {
  auto all = refused(with("hidden_act", "\"gelu\"").set("num_local_experts", "8"));
  EXPECT_NE(all.find("hidden_act"), std::string::npos);
  EXPECT_NE(all.find("num_local_experts"), std::string::npos);
}

TEST(Config, RefusesContradictions) {
  EXPECT_REFUSED(with("num_key_value_heads", "3"), "4 attention heads cannot share 3 key/value");
  EXPECT_REFUSED(with("num_key_value_heads", "0"), "key/value heads is 0");
  EXPECT_REFUSED(with("head_dim", "15"), "head size 15 is odd");
  EXPECT_REFUSED(with("rms_norm_eps", "-1"), "norm epsilon is -1");
}

TEST(Config, HoldsItsLimits) {
  auto layers = std::to_string(limits::layers_max);
  accepted(with("num_hidden_layers", layers));
  EXPECT_REFUSED(with("num_hidden_layers", std::to_string(limits::layers_max + 1)),
                 "layers is 1025; allowed: 1 to 1024");
  EXPECT_REFUSED(with("num_hidden_layers", "0"), "layers is 0");
  accepted(with("vocab_size", std::to_string(limits::vocab_max)));
  EXPECT_REFUSED(with("vocab_size", std::to_string(limits::vocab_max + 1)), "vocabulary is");
  accepted(with("max_position_embeddings", std::to_string(limits::context_max)));
  EXPECT_REFUSED(with("max_position_embeddings", std::to_string(limits::context_max + 1)),
                 "context is");
  EXPECT_REFUSED(with("hidden_size", "4294967296"), "hidden_size must be an integer");
  EXPECT_REFUSED(with("hidden_size", "-1"), "hidden_size must be an integer");
  EXPECT_REFUSED(with("hidden_size", ""), "hidden_size is missing");
}

TEST(Config, RefusesWhatIsNoJson) {
  for (const char* bad : {"", "{", "[]", "nonsense", "{\"a\":1"}) {
    problem_list problems;
    read_config(bad, "config.json", problems);
    ASSERT_EQ(problems.size(), 1u);
    EXPECT_NE(problems[0].find("config.json: not a JSON object"), std::string::npos);
  }
  problem_list problems;
  read_config(std::string(100000, '['), "config.json", problems);
  EXPECT_EQ(problems.size(), 1u);
}

generation_defaults generation(std::string_view json, problem_list& problems) {
  return read_generation_config(json, "generation_config.json", problems);
}

TEST(GenerationConfig, ReadsOneIdOrAList) {
  problem_list problems;
  auto one =
      generation(R"({"eos_token_id":7,"temperature":0.6,"top_k":20,"top_p":0.95})", problems);
  EXPECT_EQ(one.eos_ids, (std::vector<uint32_t>{7}));
  EXPECT_EQ(one.temperature, 0.6f);
  EXPECT_EQ(one.top_k, 20u);
  EXPECT_EQ(one.top_p, 0.95f);
  auto list = generation(R"({"eos_token_id":[7,8],"do_sample":false})", problems);
  EXPECT_EQ(list.eos_ids, (std::vector<uint32_t>{7, 8}));
  EXPECT_EQ(list.temperature, 0.0f);
  EXPECT_EQ(list.top_k, std::nullopt);
  EXPECT_TRUE(problems.empty());
}

TEST(GenerationConfig, RefusesOutOfRange) {
  for (const char* bad :
       {R"({"eos_token_id":-2})", R"({"eos_token_id":"x"})", R"({"eos_token_id":[1048576]})",
        R"({"temperature":-1})", R"({"top_p":1.5})", R"({"top_k":-2})", "[]"}) {
    problem_list problems;
    generation(bad, problems);
    EXPECT_EQ(problems.size(), 1u) << bad;
  }
}

TEST(GenerationConfig, ListsAllThatIsWrong) {
  problem_list problems;
  generation(R"({"temperature":-1,"top_p":2,"top_k":"x"})", problems);
  EXPECT_EQ(problems.size(), 3u);
}

}  // namespace
}  // namespace lethe

#include "runtime/model/gguf_shape.hpp"

#include <cmath>
#include <limits>

#include "model_files.hpp"

namespace lethe {
namespace {

using test::append;
using test::gguf_text;

/// A llama's metadata; `without` leaves one key out, so that a test can write it otherwise.
gguf_text llama(std::string_view without = "", std::string_view architecture = "llama") {
  gguf_text t;
  std::string prefix = std::string(architecture) + ".";
  auto u32 = [&](const char* key, uint32_t value) {
    if (key != without) t.u32(prefix + key, value);
  };
  if (without != "general.architecture") t.text("general.architecture", architecture);
  u32("block_count", 2);
  u32("context_length", 512);
  u32("embedding_length", 64);
  u32("feed_forward_length", 128);
  u32("attention.head_count", 4);
  u32("attention.head_count_kv", 2);
  if (without != "attention.layer_norm_rms_epsilon")
    t.f32(prefix + "attention.layer_norm_rms_epsilon", 1e-5f);
  u32("vocab_size", 512);
  return t;
}

struct looked_at {
  gguf_numbers numbers;
  std::string problems;
};

looked_at look(const gguf_text& text) {
  std::string bytes = text.bytes();
  auto file = gguf_file::parse(as_bytes(bytes), "x.gguf");
  EXPECT_TRUE(file) << (file ? "" : file.why().text);
  problem_list problems;
  looked_at made;
  if (!file) return made;
  made.numbers = read_gguf_shape(*file, problems);
  for (const auto& p : problems) made.problems += p + "\n";
  return made;
}

model_shape accepted(const gguf_text& text) {
  auto made = look(text);
  EXPECT_EQ(made.problems, "");
  EXPECT_TRUE(made.numbers.known_family);
  return made.numbers.shape;
}

#define EXPECT_REFUSED(text, part) \
  EXPECT_NE(look(text).problems.find(part), std::string::npos) << look(text).problems

TEST(GgufShape, ReadsALlama) {
  auto s = accepted(llama().f32("llama.rope.freq_base", 5e5f));
  EXPECT_EQ(s.family, "llama");
  EXPECT_EQ(s.head_dim, 16u);
  EXPECT_EQ(s.rope.rotary, 16u);
  EXPECT_EQ(s.rope.theta, 5e5);
  EXPECT_EQ(s.vocab, 512u);
  EXPECT_TRUE(s.tied);
  EXPECT_EQ(accepted(llama("attention.head_count_kv")).kv_heads, 4u);
  EXPECT_TRUE(accepted(llama("", "qwen2")).qkv_bias);
  EXPECT_TRUE(accepted(llama("", "qwen3")).qk_norm);
}

TEST(GgufShape, NamesEachMissingKey) {
  for (const char* key :
       {"block_count", "context_length", "embedding_length", "feed_forward_length",
        "attention.head_count", "attention.layer_norm_rms_epsilon"})
    EXPECT_REFUSED(llama(key), "metadata key llama." + std::string(key) + " is missing");
  EXPECT_REFUSED(llama("general.architecture"), "general.architecture is missing");
}

TEST(GgufShape, NamesAKeyOfTheWrongKind) {
  EXPECT_REFUSED(llama("block_count").text("llama.block_count", "2"),
                 "\"llama.block_count\" is text, not an integer");
  EXPECT_REFUSED(llama("block_count").f32("llama.block_count", 2), "is f32, not an integer");
  EXPECT_REFUSED(llama("block_count").key("llama.block_count", 11, int64_t{-1}),
                 "does not fit into 32 bits");
  EXPECT_REFUSED(llama().u32("llama.rope.freq_base", 10000), "is u32, not a number with");
  EXPECT_REFUSED(llama().flag("general.type", true), "\"general.type\" is bool, not a text");
  EXPECT_REFUSED(llama("general.architecture").u32("general.architecture", 1),
                 "\"general.architecture\" is u32, not a text");
  std::string per_layer;
  append(per_layer, int32_t{4});
  append(per_layer, int32_t{4});
  EXPECT_REFUSED(llama("attention.head_count").array("llama.attention.head_count", 5, 2, per_layer),
                 "is an array of i32, not an integer");
}

TEST(GgufShape, RefusesByName) {
  auto other = look(llama("", "gemma3"));
  EXPECT_FALSE(other.numbers.known_family);
  EXPECT_EQ(other.numbers.shape.layers, 2u);  // for display
  EXPECT_EQ(other.problems,
            "x.gguf: architecture \"gemma3\" is not supported; supported: llama (and mistral), "
            "qwen2, qwen3\n");
  EXPECT_REFUSED(llama().u32("llama.expert_count", 8), "llama.expert_count: mixture of experts");
  EXPECT_EQ(accepted(llama().u32("llama.expert_count", 0)).layers, 2u);
  EXPECT_REFUSED(
      llama().u32("llama.attention.key_length", 32).u32("llama.attention.value_length", 16),
      "keys of 32 and values of 16 dimensions are not supported");
  EXPECT_REFUSED(llama().f32("llama.logit_scale", 0.5f), "llama.logit_scale is not supported");
  EXPECT_EQ(accepted(llama().f32("llama.logit_scale", 1)).layers, 2u);
  EXPECT_REFUSED(llama().f32("llama.final_logit_softcapping", 30), "softcapping is not supported");
  EXPECT_REFUSED(llama().flag("llama.attention.causal", false), "attention.causal false is not");
  for (const char* type : {"adapter", "mmproj", "imatrix"})
    EXPECT_REFUSED(llama().text("general.type", type),
                   "general.type \"" + std::string(type) + "\" is not supported");
  EXPECT_EQ(accepted(llama().text("general.type", "model")).layers, 2u);
}

TEST(GgufShape, RefusesMoreTokensThanRows) {
  auto tokens = [](size_t count) {
    std::string texts;
    for (size_t i = 0; i < count; ++i) texts += gguf_text::text("t");
    return llama().array("tokenizer.ggml.tokens", 8, count, texts);
  };
  EXPECT_EQ(accepted(tokens(512)).vocab, 512u);
  EXPECT_EQ(accepted(tokens(3)).vocab, 512u);
  EXPECT_REFUSED(tokens(513), "tokenizer.ggml.tokens has 513 tokens for an embedding of 512 rows");
}

TEST(GgufShape, ReadsRopeScaling) {
  auto scaled = [](const char* type) {
    return llama().text("llama.rope.scaling.type", type).f32("llama.rope.scaling.factor", 4);
  };
  EXPECT_EQ(accepted(scaled("linear")).rope.factor, 4);
  EXPECT_EQ(accepted(scaled("none")).rope.scaling, rope_scaling::none);
  auto yarn = accepted(scaled("yarn").u32("llama.rope.scaling.original_context_length", 128)).rope;
  EXPECT_EQ(yarn.scaling, rope_scaling::yarn);
  EXPECT_EQ(yarn.original_context, 128u);
  EXPECT_EQ(accepted(scaled("yarn")).rope.original_context, 512u);
  auto weak = accepted(scaled("yarn").f32("llama.rope.scaling.attn_factor", 0.5f)).rope;
  EXPECT_NEAR(rope_magnitude(weak), 0.5 * (0.1 * std::log(4) + 1), 1e-9);
  EXPECT_EQ(accepted(llama().f32("llama.rope.scale_linear", 8)).rope.factor, 8);
  EXPECT_REFUSED(scaled("longrope"),
                 "\"longrope\" is not supported; supported: none, linear, yarn");
  EXPECT_REFUSED(scaled("yarn").f32("llama.rope.scaling.yarn_ext_factor", 0.5f),
                 "yarn_ext_factor is 0.5; supported: 1 with yarn");
  EXPECT_EQ(accepted(scaled("yarn").f32("llama.rope.scaling.yarn_ext_factor", 1)).layers, 2u);
  EXPECT_REFUSED(scaled("linear").f32("llama.rope.scaling.attn_factor", 2), "only with yarn");
}

TEST(GgufShape, RefusesNumbersThatAreNone) {
  float nan = std::nanf(""), infinity = std::numeric_limits<float>::infinity();
  for (float bad : {nan, infinity, -1.0f, 0.0f})
    EXPECT_REFUSED(llama().f32("llama.rope.freq_base", bad), "rope theta is");
  for (float bad : {nan, infinity, -1.0f})
    EXPECT_REFUSED(llama("attention.layer_norm_rms_epsilon")
                       .f32("llama.attention.layer_norm_rms_epsilon", bad),
                   "norm epsilon is");
  auto yarn = [] { return llama().text("llama.rope.scaling.type", "yarn"); };
  for (float bad : {nan, infinity, -1.0f}) {
    EXPECT_REFUSED(yarn().f32("llama.rope.scaling.factor", bad), "rope scaling factor is");
    EXPECT_REFUSED(yarn().f32("llama.rope.scaling.yarn_beta_fast", bad), "beta_slow 1 must not");
    EXPECT_REFUSED(yarn().f32("llama.rope.scaling.attn_factor", bad), "attention_factor is");
  }
}

/// One f32 tensor of these numbers.
gguf_text with_factors(std::initializer_list<float> factors) {
  auto t = llama().tensor("rope_freqs.weight", {factors.size()}, 0, 0);
  for (float f : factors) append(t.data, f);
  return t;
}

TEST(GgufShape, DividesFrequenciesByRopeFreqs) {
  auto s = accepted(with_factors({1, 1, 1, 1, 2, 4, 8, 8}));
  auto plain = s.rope;
  plain.factors.clear();
  auto divided = rope_frequencies(s.rope), whole = rope_frequencies(plain);
  EXPECT_EQ(divided[0], whole[0]);
  EXPECT_EQ(divided[5], whole[5] / 4);
  EXPECT_REFUSED(with_factors({1, 1}), "rope_freqs has 2 numbers; 8 pairs turn");
  EXPECT_REFUSED(with_factors({1, 1, 1, 1, 1, 1, 1, 0}), "rope_freqs holds 0");
  EXPECT_REFUSED(with_factors({1, 1, 1, 1, 1, 1, 1, std::nanf("")}), "rope_freqs holds nan");
  auto half = llama().tensor("rope_freqs.weight", {8}, 1, 0);
  half.data.resize(32);
  EXPECT_REFUSED(half, "rope_freqs.weight must be f32");
}

TEST(GgufShape, ReadsWindows) {
  auto windowed = [] { return llama().u32("llama.attention.sliding_window", 100); };
  EXPECT_EQ(accepted(windowed()).window, (std::vector<uint32_t>{100, 100}));
  auto pattern = [&](std::string_view flags) {
    return windowed().array("llama.attention.sliding_window_pattern", 7, flags.size(), flags);
  };
  EXPECT_EQ(accepted(pattern(std::string_view("\1\0", 2))).window, (std::vector<uint32_t>{100, 0}));
  EXPECT_REFUSED(pattern("\1\1\1"), "sliding_window_pattern must be one bool per layer");
  EXPECT_REFUSED(windowed().u32("llama.attention.sliding_window_pattern", 6),
                 "must be one bool per layer");
}

TEST(GgufShape, HoldsItsLimits) {
  for (uint32_t bad : {0u, 1025u, UINT32_MAX})
    EXPECT_REFUSED(llama("block_count").u32("llama.block_count", bad), "layers is");
  EXPECT_REFUSED(llama().u32("llama.rope.dimension_count", 8),
                 "8 of 16 dimensions of a head turn; supported in llama files: all");
  EXPECT_EQ(accepted(llama("", "qwen2").u32("qwen2.rope.dimension_count", 8)).rope.rotary, 8u);
  EXPECT_REFUSED(llama("attention.head_count").u32("llama.attention.head_count", 0), "heads is 0");
}

TEST(GgufDefaults, RefusesOutOfRange) {
  std::string bytes = llama().f32("general.sampling.temp", std::nanf("")).bytes();
  auto file = gguf_file::parse(as_bytes(bytes), "x.gguf");
  ASSERT_TRUE(file);
  problem_list problems;
  EXPECT_EQ(read_gguf_defaults(*file, problems).temperature, std::nullopt);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0], "x.gguf: temperature is nan; allowed: 0 to 100");
}

}  // namespace
}  // namespace lethe

// What the published vectors don't cover, against a double-precision transformer that shares no
// code with the engine.

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/e2e/engine_run.hpp"
#include "tests/e2e/random_model.hpp"

namespace lethe::e2e {
namespace {

struct named_recipe {
  const char* name;
  oracle::recipe recipe;
};

const named_recipe recipes[] = {
    {"llama3_scaling",
     {.rope = {.theta = 500000, .type = "llama3", .factor = 8, .original_context = 64}}},
    {"linear_scaling", {.rope = {.type = "linear", .factor = 4}}},
    {"yarn",
     {.family = "qwen3",
      .qk_norm = true,
      .rope = {.theta = 1e6, .type = "yarn", .factor = 4, .original_context = 64}}},
    {"yarn_attention_factor",
     {.rope = {.type = "yarn", .factor = 8, .original_context = 32, .attention_factor = 1.25}}},
    {"mistral_window", {.family = "mistral", .window = 9}},
    {"qwen2_window_from_layer_1",
     {.family = "qwen2", .window = 11, .window_from_layer = 1, .qkv_bias = true}},
    {"one_kv_head", {.heads = 8, .kv_heads = 1, .seed = 3}},
    {"heads_of_their_own_size", {.family = "qwen3", .head_dim = 40, .tied = true, .qk_norm = true}},
    {"six_heads", {.hidden = 96, .heads = 6, .kv_heads = 3, .ffn = 160, .seed = 5}},
    {"odd_sizes", {.layers = 3, .hidden = 50, .heads = 5, .kv_heads = 5, .ffn = 77, .vocab = 101}},
    {"smallest_heads",
     {.hidden = 6, .heads = 3, .kv_heads = 3, .head_dim = 2, .ffn = 10, .seed = 7}},
    {"heads_wider_than_the_model",
     {.hidden = 32, .heads = 2, .kv_heads = 1, .head_dim = 256, .seed = 8}},
    {"window_beyond_all", {.family = "mistral", .window = 4294967295}},
    {"rope_parameters", {.rope = {.theta = 123456}, .rope_parameters = true}},
    {"llama3_in_rope_parameters",
     {.rope = {.theta = 500000, .type = "llama3", .factor = 8, .original_context = 64},
      .rope_parameters = true}},
    {"bf16", {.dtype = "BF16", .seed = 9}},
    {"f16", {.tied = true, .dtype = "F16", .seed = 11}},
};

class Oracle : public testing::TestWithParam<named_recipe> {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("lethe-oracle-" + std::to_string(getpid()) + "-" + GetParam().name);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};

std::vector<uint32_t> prompt_for(uint32_t vocab) {
  std::vector<uint32_t> ids;
  for (uint32_t i = 0; i < 45; ++i) ids.push_back((i * 37 + 11) % vocab);
  return ids;
}

/// Cuts that this many heads allow.
std::vector<cut> cuts_for(const oracle::recipe& r) {
  std::vector<cut> all;
  for (uint32_t t : {1u, 2u, 3u, 4u, 5u, 6u, 8u})
    if (r.heads % t == 0 && (r.kv_heads % t == 0 || t % r.kv_heads == 0)) all.push_back({t, 1});
  all.push_back({1, 2});
  return all;
}

TEST_P(Oracle, AgreesWithTheEngineOnEveryPosition) {
  const auto& recipe = GetParam().recipe;
  auto truth = oracle::folder_writer(recipe, folder_).write();
  auto prompt = prompt_for(recipe.vocab);
  auto want = oracle::logits(truth, prompt);
  auto m = open(folder_);
  constexpr uint32_t tops = 20;
  wanted ask{.prompt = prompt,
             .max_tokens = 8,
             .how = {.temperature = 0, .want_logprob = true, .logprobs = tops},
             .prompt_logprobs = true};
  std::optional<answered> first;
  for (cut c : cuts_for(recipe)) {
    std::string where = "T" + std::to_string(c.tensor) + " P" + std::to_string(c.pipeline);
    auto e = start(m, small({.ranks = c, .page_tokens = 5, .chunk_tokens = 13}));
    auto got = run_all(*e, {ask}, m.vocab())[0];
    if (!first) first = got;
    EXPECT_EQ(got, *first) << where << ": not the bits of the first cut";
  }
  for (size_t position = 0; position + 1 < prompt.size(); ++position) {
    const auto& row = want[position];
    double most = *std::max_element(row.begin(), row.end()), sum = 0, largest = 0;
    for (double v : row) sum += std::exp(v - most), largest = std::max(largest, std::fabs(v));
    for (uint32_t i = 0; i < tops; ++i) {
      auto t = first->prompt_top[(position + 1) * tops + i];
      ASSERT_NEAR(t.logprob, row[t.id] - most - std::log(sum), 1e-4 * largest)
          << "position " << position;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Recipes, Oracle, testing::ValuesIn(recipes),
                         [](const auto& p) { return std::string(p.param.name); });

}  // namespace
}  // namespace lethe::e2e

#include <filesystem>

#include "runtime/model/checkpoint.hpp"
#include "runtime/model/load.hpp"
#include "tests/places.hpp"
#include "tests/unit/parallel_device_ranks.hpp"
#include "tests/unit/parallel_random_model.hpp"

// Ranks of a cut on devices give the CPU's bits, and leave as little behind.

namespace lethe::testing {
namespace {

constexpr dtype f32 = dtype::f32, bf16 = dtype::bf16, q8 = dtype::q8_0;
using types = random_model::types;

/// One that has chunks, one token alone, and some: prefills and decodes in one step.
std::vector<prompt> few_prompts(uint32_t vocab) {
  return {random_prompt(11, vocab, 1), random_prompt(1, vocab, 2), random_prompt(4, vocab, 3)};
}

struct cut_case {
  const char* name;
  cut ranks;
  types stored;
  model_shape shape = rich_shape(6);
  kv_type kv = kv_type::f32;
  device_ranks_options with{};
};
std::ostream& operator<<(std::ostream& to, const cut_case& c) { return to << c.name; }

model_shape with_heads(uint32_t heads, uint32_t kv_heads, uint32_t ffn) {
  model_shape s = rich_shape(6);
  s.heads = heads, s.kv_heads = kv_heads, s.ffn = ffn;
  return s;
}

class DeviceCut : public ::testing::TestWithParam<cut_case> {};

TEST_P(DeviceCut, GivesTheCpusBits) {
  const cut_case& c = GetParam();
  random_model m(c.shape, c.stored);
  auto prompts = few_prompts(c.shape.vocab);
  manner how{.ranks = c.ranks, .page_tokens = 4, .chunk = 6, .kv = c.kv};
  auto want = run(m.weights, prompts, {.ranks = c.ranks, .kv = c.kv});
  device_ranks d(m.weights, prompts, how, c.with);
  d.start();
  EXPECT_TRUE(d.run_all(plan_mixed(prompts, how, 2)) == want);
  d.end();
}

const cut_case cases[] = {
    {"TwoTensorRanks", {2, 1}, {}},
    {"TwoStages", {1, 2}, {}},
    {"ThreeStagesInMixedTypes", {1, 3}, {bf16, q8, f32}},
    {"TwoByTwo", {2, 2}, {}},
    {"TwoByTwoWithoutGraphs", {2, 2}, {q8, bf16, bf16}, rich_shape(6), kv_type::int8, {false}},
    {"FourTensorRanks", {4, 1}, {}},
    // down has three blocks of K, o four.
    {"InQ8WhereDownIsNotCutAlongK", {2, 1}, {q8, q8, q8}},
    {"InQ8CutAlongK", {4, 1}, {q8, q8, q8}, with_heads(8, 4, 128)},
    {"EightTensorRanksTwoToAKeyHead", {8, 1}, {q8, f32, f32}},
    // Ranks look at other heads of a key head, and nothing divides: three parts of 100 and of 53.
    {"ThreeUnevenTensorRanks", {3, 1}, {}, with_heads(6, 2, 100)},
    {"ThreeUnevenTensorRanksInTwoStages", {3, 2}, {bf16, f32, q8}, with_heads(6, 2, 101)},
    {"InAnyOrderOfThreads",
     {2, 2},
     {f32, q8, q8},
     rich_shape(6),
     kv_type::bf16,
     {true, emulated::order::shuffled}},
    {"WhenNcclTakesItsTime",
     {2, 2},
     {},
     rich_shape(6),
     kv_type::f32,
     {.graphs = true, .order = {}, .nccl = {.questions = 2}}},
};
INSTANTIATE_TEST_SUITE_P(Random, DeviceCut, ::testing::ValuesIn(cases),
                         [](const auto& c) { return c.param.name; });

}  // namespace
}  // namespace lethe::testing

#include <fmt/format.h>

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

bool zero(std::span<const std::byte> b) {
  return std::ranges::all_of(b, [](std::byte x) { return x == std::byte{0}; });
}

/// A small model on four ranks, which answers in tenths of a second.
struct DeviceCutOfFour : ::testing::Test {
  static constexpr uint32_t vocab = 53;
  random_model m{small_shape(2, 96), {q8, f32, f32}};
  std::vector<prompt> prompts = few_prompts(vocab);
  manner how{.ranks = {2, 2}, .page_tokens = 4};
  std::vector<std::unique_ptr<planned>> whole = plan_all(prompts, how);
  planned& step = *whole[0];
};

TEST_F(DeviceCutOfFour, ComputesOnlyTheRowsThatAreAskedFor) {
  auto want = run(m.weights, prompts, {});
  device_ranks d(m.weights, prompts, how);
  d.start();
  planned chunk, decode;
  add_entry(chunk, prompts, 0, 0, 10, 4);
  chunk.plan.logit_rows = chunk.plan.entries[0].logit_rows = 0;
  add_entry(decode, prompts, 0, 10, 1, 4);
  add_entry(decode, prompts, 2, 0, 4, 4);
  decode.plan.logit_rows = 3;
  decode.plan.entries[1].logit_rows = 2;
  d.execute(chunk);
  d.execute(decode);
  d.expect_no_errors();
  auto row = [&](uint32_t i) {
    return std::vector(decode.logits.begin() + i * vocab, decode.logits.begin() + (i + 1) * vocab);
  };
  EXPECT_TRUE(row(0) == want[0][10]);
  EXPECT_TRUE(row(1) == want[2][2] && row(2) == want[2][3]);
  d.end();
}

TEST_F(DeviceCutOfFour, TakesNoMemoryAndWaitsOnceInAStepAndDecodesByGraphs) {
  auto want = run(m.weights, prompts, {});
  device_ranks d(m.weights, prompts, how);
  d.start();
  EXPECT_EQ(d.fake.registrations(), 4u * 3u) << "with the world and both groups";
  auto counted = [&] {
    std::vector<emulated::device::counts> all;
    for (auto& each : d.devices) all.push_back(each->counted());
    return all;
  };
  auto before = counted();
  auto steps = plan_all(prompts, {.page_tokens = 4, .chunk = 1});
  for (size_t i = 0; i < steps.size(); ++i) steps[i]->plan.wipe_scratch = i % 3 != 0;
  EXPECT_TRUE(d.run_all(steps) == want);
  for (uint32_t r = 0; r < 4; ++r) {
    auto after = d.devices[r]->counted();
    EXPECT_EQ(after.allocations, before[r].allocations);
    EXPECT_EQ(after.waits - before[r].waits, steps.size());
    EXPECT_EQ(after.graphs_run - before[r].graphs_run, steps.size());
    EXPECT_EQ(d.shards[r]->graphs(), d.shards[0]->graphs());
  }
  before = counted();
  auto mixed = plan_mixed(prompts, {.page_tokens = 4, .chunk = 3}, 2);
  EXPECT_TRUE(d.run_all(mixed) == want);
  auto after = counted();
  for (uint32_t r = 0; r < 4; ++r) {
    EXPECT_EQ(after[r].allocations, before[r].allocations);
    EXPECT_EQ(after[r].waits - before[r].waits, mixed.size());
  }
  EXPECT_EQ(d.fake.left().pieces_of_memory, 4u);
  d.end();
}

/// What went from rank to rank is found where it passed, until a plan says that it is to go.
TEST_F(DeviceCutOfFour, WipesWhatRanksPassedEachOtherWhenAPlanSaysSo) {
  device_ranks d(m.weights, prompts, how);
  d.start();
  for (auto& s : d.shards) EXPECT_TRUE(zero(s->pool()) && zero(s->scratch()) && zero(s->shared()));
  d.execute(step);
  d.expect_no_errors();
  auto copy = [](std::span<std::byte> b) { return std::vector(b.begin(), b.begin() + 32); };
  auto sums = copy(d.shards[0]->shared()), rows = copy(d.shards[0]->scratch());
  ASSERT_FALSE(zero(sums) || zero(rows));
  auto passed = [&] { return d.fake.holds(sums) && d.fake.holds(rows); };
  EXPECT_TRUE(passed());

  d.execute(step_plan{.wipes = step.plan.pages});
  EXPECT_TRUE(passed());
  for (auto& s : d.shards) {
    EXPECT_TRUE(zero(s->pool()));
    EXPECT_FALSE(zero(s->scratch()) || zero(s->shared()));
  }
  d.execute(step_plan{.wipe_scratch = true});
  EXPECT_FALSE(d.fake.holds(sums) || d.fake.holds(rows));
  for (auto& s : d.shards) EXPECT_TRUE(zero(s->scratch()) && zero(s->shared()));

  d.execute(step);  // the end has something to wipe
  d.expect_no_errors();
  d.end();
}

/// Every rank says what one of them met, in the step or, where it had done its part, in the next;
/// afterwards nothing is left.
struct DeviceCutEnds : DeviceCutOfFour {
  void expect_told(device_ranks& d, std::string_view why) {
    d.execute(step);
    for (uint32_t r = 0; r < 4; ++r)
      EXPECT_NE(d.errors[r].find(why), std::string::npos) << "rank " << r << ": " << d.errors[r];
    d.end();
  }
};

TEST_F(DeviceCutEnds, WhenNcclRefusesOrFailsBehindItsCaller) {
  for (auto what : {nccl_fault::refused, nccl_fault::fails})
    for (auto [rank, call] :
         {std::pair(1u, nccl_call::all_gather), {0u, nccl_call::send}, {3u, nccl_call::recv}}) {
      device_ranks d(m.weights, prompts, how);
      d.start();
      d.execute(step);
      d.expect_no_errors();
      d.fake.inject({.rank = rank, .call = call, .what = what});
      d.execute(step);
      EXPECT_TRUE(d.fake.all_faults_happened());
      bool behind = what == nccl_fault::fails;  // what was called last is named
      expect_told(
          d, fmt::format("NCCL failed on rank {} in {}", rank, behind ? "nccl" : name_of(call)));
    }
}

TEST_F(DeviceCutEnds, WhenARankIsLost) {
  device_ranks d(m.weights, prompts, how);
  d.start();
  d.execute(step, {{3, [&] { d.fake.lose(3); }}});
  expect_told(d, "another rank or the network is gone");
}

TEST_F(DeviceCutEnds, WhenARankDoesNotComeInTime) {
  device_ranks d(m.weights, prompts, how, {.graphs = false});
  d.timeout = std::chrono::milliseconds(4000);
  d.start();
  planned small;
  add_entry(small, prompts, 1, 0, 1, 4);
  auto begin = std::chrono::steady_clock::now();
  d.execute(small, {{0, [] {}}});
  EXPECT_GE(std::chrono::steady_clock::now() - begin, d.timeout);
  for (uint32_t r = 1; r < 4; ++r) EXPECT_NE(d.errors[r], "");
  expect_told(d, "NCCL did not end what was under way");
}

TEST_F(DeviceCutEnds, WhenNcclDoesNotGoOn) {
  device_ranks d(m.weights, prompts, how, {.graphs = false});
  d.timeout = std::chrono::milliseconds(4000);
  d.start();
  d.fake.inject({.rank = 1, .call = nccl_call::all_gather, .what = nccl_fault::never_ends});
  planned small;
  add_entry(small, prompts, 1, 0, 1, 4);
  d.execute(small);
  expect_told(d, "NCCL did not end ");
}

/// Only the first stage sees ids.
TEST_F(DeviceCutEnds, WhenARankRefusesAPlan) {
  device_ranks d(m.weights, prompts, how);
  d.start();
  planned bad = step;
  bad.ids[3] = vocab;
  d.execute(bad);
  EXPECT_EQ(d.errors[0], "step 0: a token id is not in the vocabulary of 53");
  for (uint32_t r : {2u, 3u}) EXPECT_TRUE(d.errors[r].starts_with("communicator: ")) << d.errors[r];
  expect_told(d, "aborted the group");
}

TEST_F(DeviceCutEnds, WhenADeviceFails) {
  device_ranks d(m.weights, prompts, how);
  d.start();
  d.devices[2]->break_down();
  d.execute(step);
  EXPECT_EQ(d.errors[2], "shard: a step failed on the device: CUDA error 719");
  for (uint32_t r : {0u, 1u, 3u})
    EXPECT_TRUE(d.errors[r].starts_with("communicator: ")) << d.errors[r];
}

TEST_F(DeviceCutEnds, WhenOneCannotStart) {
  device_ranks full(m.weights, prompts, how);
  full.join();
  full.devices[1]->run_out();
  full.make();
  EXPECT_NE(full.errors[1].find("no room on the device"), std::string::npos) << full.errors[1];
  for (const std::string& e : full.errors) EXPECT_NE(e, "");
  full.end(false);
}

TEST_F(DeviceCutEnds, WhenOneCannotShareMemory) {
  device_ranks d(m.weights, prompts, how);
  d.fake.inject({.rank = 2, .call = nccl_call::mem_alloc, .what = nccl_fault::refused});
  d.join();
  d.make();
  for (const std::string& e : d.errors)
    EXPECT_NE(e.find("rank 2's GPU has no "), std::string::npos) << e;
  d.end(false);
}

TEST_F(DeviceCutEnds, WhenGraphsCannotBeMade) {
  device_ranks d(m.weights, prompts, how);
  d.fake.inject(
      {.rank = 0, .call = nccl_call::all_gather, .what = nccl_fault::refused, .after = 9});
  d.join();
  d.make();
  for (const std::string& e : d.errors)
    EXPECT_NE(e.find("NCCL failed on rank 0 in ncclAllGather"), std::string::npos) << e;
  d.end();
}

std::filesystem::path vectors() {
  const char* set = std::getenv("LETHE_VECTORS");
  return set ? set : places::vectors;
}

void expect_a_files_bits(const std::filesystem::path& path, std::optional<dtype> quantize,
                         cut ranks, uint32_t tokens) {
  auto opened = checkpoint::open(path);
  ASSERT_TRUE(opened) << opened.why().text;
  auto loaded = loaded_model::load(*opened, {.quantize = quantize});
  ASSERT_TRUE(loaded) << loaded.why().text;
  const model_weights& w = (*loaded)->weights();
  std::vector<prompt> prompts{random_prompt(tokens, w.shape.vocab, 1)};
  manner how{.ranks = ranks};
  auto want = run(w, prompts, how);
  device_ranks d(w, prompts, how, {.graphs = false});
  d.start();
  EXPECT_TRUE(d.run_all(plan_mixed(prompts, how, 1)) == want);
  d.end();
}

TEST(DeviceCutOfFiles, GivesTheCpusBitsOnPublishedModels) {
  if (!std::filesystem::exists(vectors() / "models")) GTEST_SKIP() << "no test vectors";
  expect_a_files_bits(vectors() / "models" / "llama-tiny-f16", {}, {2, 2}, 3);
  expect_a_files_bits(vectors() / "models" / "qwen2-tiny", {}, {2, 1}, 3);
  expect_a_files_bits(vectors() / "models" / "qwen3-tiny", {}, {1, 2}, 3);
}
TEST(DeviceCutOfFiles, GivesTheCpusBitsOnEmber) {
  expect_a_files_bits(std::filesystem::path(places::source) / "models" / "ember-draft", dtype::q8_0,
                      {3, 2}, 2);
}

}  // namespace
}  // namespace lethe::testing

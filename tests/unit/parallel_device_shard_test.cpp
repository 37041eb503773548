#include "parallel/device_shard.hpp"

#include <gtest/gtest.h>

#include "tests/cuda/emulated_device.hpp"
#include "tests/cuda/emulated_row.hpp"
#include "tests/places.hpp"
#include "tests/unit/parallel_device_models.hpp"
#include "tests/unit/parallel_random_model.hpp"

namespace lethe::testing {
namespace {

/// The last decodes of the longest see two tiles through the last window.
model_shape rich_shape() { return testing::rich_shape(40); }
std::vector<prompt> some_prompts(uint32_t vocab) { return testing::some_prompts(vocab, 68); }

bool zero(std::span<const std::byte> b) {
  return std::ranges::all_of(b, [](std::byte x) { return x == std::byte{0}; });
}

struct running {
  std::unique_ptr<emulated::device> device;
  std::unique_ptr<device_shard> shard;
};

running start(const model_weights& weights, const std::vector<prompt>& prompts, const manner& how,
              bool graphs, emulated::order order = emulated::order::forwards) {
  auto device = std::make_unique<emulated::device>(order);
  auto shard =
      shard_on(*device, emulated_row, weights, {shard_config_for(weights, prompts, how), graphs});
  if (!shard) throw std::runtime_error(shard.why().text);
  return {std::move(device), *std::move(shard)};
}

/// Bit for bit the CPU's logits, in whole prompts and in chunks, then decodes, with graphs and
/// without.
void expect_the_cpus_bits(const model_weights& weights, std::vector<prompt> prompts,
                          manner how = {}, uint32_t decodes = 3) {
  auto want = run(weights, prompts, {.kv = how.kv});
  for (bool graphs : {true, false}) {
    running r = start(weights, prompts, how, graphs);
    auto steps = plan_mixed(prompts, how, decodes);
    auto got = run_on_device(*r.shard, weights.shape.vocab, steps, prompts.size());
    EXPECT_TRUE(got == want) << "graphs " << graphs << " fault " << r.device->fault();
  }
}

void expect_the_cpus_bits(const model_shape& shape, random_model::types types, manner how = {}) {
  random_model m(shape, types);
  expect_the_cpus_bits(m.weights, some_prompts(shape.vocab), how);
}

TEST(DeviceShard, GivesTheCpusBitsInFloat) {
  expect_the_cpus_bits(small_shape(2, 96), {}, {.page_tokens = 4, .chunk = 50});
}
TEST(DeviceShard, GivesTheCpusBitsOverThreeTilesOfKeys) {
  model_shape s = small_shape(2, 96);
  s.window = {70};
  random_model m(s, {});
  expect_the_cpus_bits(m.weights, {random_prompt(139, s.vocab, 1)}, {.chunk = 100});
}
TEST(DeviceShard, GivesTheCpusBitsWithBiasesNormsWindowsAndPartialRotation) {
  expect_the_cpus_bits(rich_shape(), {}, {.chunk = 37});
}
TEST(DeviceShard, GivesTheCpusBitsInQ8) {
  expect_the_cpus_bits(rich_shape(), {dtype::q8_0, dtype::q8_0, dtype::q8_0}, {.page_tokens = 8});
}
TEST(DeviceShard, GivesTheCpusBitsInMixedTypes) {
  model_shape s = small_shape(2, 96);
  s.kv_heads = 1;
  expect_the_cpus_bits(s, {dtype::bf16, dtype::q8_0, dtype::f32}, {.chunk = 70});
  expect_the_cpus_bits(s, {dtype::q8_0, dtype::bf16, dtype::bf16}, {.chunk = 70});
}
TEST(DeviceShard, GivesTheCpusBitsWithSmallerKeysAndValues) {
  random_model m(rich_shape(), {});
  for (kv_type kv : {kv_type::bf16, kv_type::int8})
    expect_the_cpus_bits(m.weights, {random_prompt(33, 53, 1), random_prompt(9, 53, 2)},
                         {.chunk = 20, .kv = kv});
}

TEST(DeviceShard, GivesTheSameBitsInAnyOrderOfThreads) {
  random_model m(rich_shape(), {dtype::q8_0, dtype::q8_0, dtype::q8_0});
  std::vector<prompt> prompts{random_prompt(12, 53, 1), random_prompt(5, 53, 2)};
  auto want = run(m.weights, prompts, {});
  for (emulated::order o : {emulated::order::backwards, emulated::order::shuffled}) {
    running r = start(m.weights, prompts, {.chunk = 6}, true, o);
    EXPECT_TRUE(run_on_device(*r.shard, 53, plan_mixed(prompts, {.chunk = 6}, 2), 2) == want);
  }
}

TEST(DeviceShard, ComputesOnlyTheRowsThatAreAskedFor) {
  random_model m(rich_shape(), {dtype::q8_0, dtype::f32, dtype::f32});
  std::vector<prompt> prompts{random_prompt(20, 53, 1), random_prompt(9, 53, 2),
                              random_prompt(7, 53, 3), random_prompt(1, 53, 4)};
  auto want = run(m.weights, prompts, {});
  running r = start(m.weights, prompts, {}, true);
  auto steps = plan_all(prompts, {});
  uint32_t rows[] = {1, 0, 3, 1};
  step_plan& plan = steps[0]->plan;
  plan.logit_rows = 0;
  for (plan_entry& e : plan.entries) {
    e.logit_rows = rows[e.sequence], e.first_logit_row = plan.logit_rows;
    plan.logit_rows += e.logit_rows;
  }
  ASSERT_TRUE(r.shard->execute(plan, steps[0]->data(53)));
  for (const plan_entry& e : plan.entries)
    for (uint32_t i = 0; i < e.logit_rows; ++i)
      EXPECT_TRUE(std::equal(want[e.sequence][e.tokens - e.logit_rows + i].begin(),
                             want[e.sequence][e.tokens - e.logit_rows + i].end(),
                             steps[0]->logits.begin() + (e.first_logit_row + i) * 53))
          << e.sequence << " row " << i;
}

/// Chunks that ask for no logits, then a decode that shows what they left in the pages.
TEST(DeviceShard, FillsPagesAlsoWhereNoLogitsAreAskedFor) {
  random_model m(rich_shape(), {});
  std::vector<prompt> prompts{random_prompt(20, 53, 1)};
  auto want = run(m.weights, prompts, {});
  running r = start(m.weights, prompts, {}, true);
  planned chunk, decode;
  add_entry(chunk, prompts, 0, 0, 19, 16);
  chunk.plan.logit_rows = chunk.plan.entries[0].logit_rows = 0;
  add_entry(decode, prompts, 0, 19, 1, 16);
  ASSERT_TRUE(r.shard->execute(chunk.plan, {chunk.ids.data(), nullptr}));
  ASSERT_TRUE(r.shard->execute(decode.plan, decode.data(53)));
  EXPECT_TRUE(decode.logits == want[0][19]);
}

/// Two sequences share the first page and part with a copy of the second.
TEST(DeviceShard, ContinuesFromACopiedPage) {
  random_model m(rich_shape(), {});
  prompt trunk = random_prompt(6, 53, 1), one = trunk, two = trunk;
  one.insert(one.end(), {3, 4, 5, 6});
  two.insert(two.end(), {7, 8, 9, 10});
  auto want = run(m.weights, {one, two}, {});
  running r = start(m.weights, {one, two}, {.page_tokens = 4}, true);
  planned shared, apart;
  add_entry(shared, {one}, 0, 0, 6, 4);  // pages 0 and 1
  ASSERT_TRUE(r.shard->execute(shared.plan, shared.data(53)));
  add_entry(apart, {one}, 0, 6, 4, 4);
  add_entry(apart, {one, two}, 1, 6, 4, 4);
  apart.plan.pages = {0, 1, 2, 0, 3, 4};
  apart.plan.copies = {{1, 3, 2}};
  ASSERT_TRUE(r.shard->execute(apart.plan, apart.data(53)));
  for (uint32_t i = 0; i < 4; ++i) {
    auto row = apart.logits.begin() + i * 53, other = apart.logits.begin() + (4 + i) * 53;
    EXPECT_TRUE(std::equal(row, row + 53, want[0][6 + i].begin()));
    EXPECT_TRUE(std::equal(other, other + 53, want[1][6 + i].begin()));
  }
  step_plan end, copied;
  copied.copies = {{1, 5, 2}};  // and nothing written behind it
  ASSERT_TRUE(r.shard->execute(copied, {}));
  end.wipes = {0, 1, 2, 3, 4, 5};
  ASSERT_TRUE(r.shard->execute(end, {}));
  EXPECT_TRUE(zero(r.shard->pool()));
}

TEST(DeviceShard, WipesPagesAndScratchWhenAPlanSaysSoAndAtItsEnd) {
  random_model m(small_shape(2, 96), {dtype::q8_0, dtype::q8_0, dtype::f32});
  std::vector<prompt> prompts{random_prompt(11, 53, 1), random_prompt(6, 53, 2)};
  running r = start(m.weights, prompts, {.page_tokens = 4}, true);
  EXPECT_TRUE(zero(r.shard->pool()) && zero(r.shard->scratch()));
  auto used = [&] {
    uint32_t pages = 0;
    for (size_t at = 0; at < r.shard->pool().size(); at += r.shard->page_bytes())
      pages += !zero(r.shard->pool().subspan(at, r.shard->page_bytes()));
    return pages;
  };
  auto steps = plan_all(prompts, {.page_tokens = 4});
  ASSERT_TRUE(r.shard->execute(steps[0]->plan, steps[0]->data(53)));
  EXPECT_EQ(used(), 5u);
  EXPECT_FALSE(zero(r.shard->scratch()));

  step_plan one_ends;
  one_ends.wipes = {0, 2, 4};
  ASSERT_TRUE(r.shard->execute(one_ends, {}));
  EXPECT_EQ(used(), 2u);
  EXPECT_FALSE(zero(r.shard->scratch()));

  step_plan other_ends;
  other_ends.wipes = {1, 3};
  other_ends.wipe_scratch = true;
  ASSERT_TRUE(r.shard->execute(other_ends, {}));
  EXPECT_EQ(used(), 0u);
  EXPECT_TRUE(zero(r.shard->scratch()));

  ASSERT_TRUE(r.shard->execute(steps[0]->plan, steps[0]->data(53)));
  ASSERT_EQ(r.device->left_full().size(), 1u) << "what weights were copied through";
  r.shard.reset();
  EXPECT_EQ(r.device->left_full().size(), 2u) << "the weights alone keep their bytes";
}

/// One copy in, one out, and no memory.
TEST(DeviceShard, CopiesTwiceAndWaitsOnceInAStepAndDecodesByGraphs) {
  random_model m(small_shape(2, 96), {});
  std::vector<prompt> prompts;
  for (uint32_t i = 0; i < 5; ++i) prompts.push_back(random_prompt(4 + i, 53, i));
  auto want = run(m.weights, prompts, {});
  running r = start(m.weights, prompts, {}, true);
  auto before = r.device->counted();
  auto steps = plan_all(prompts, {.chunk = 1});  // of 5, 4, 3, 2, 1 sequences
  EXPECT_TRUE(run_on_device(*r.shard, 53, steps, 5) == want);
  auto after = r.device->counted();
  EXPECT_EQ(after.allocations, before.allocations);
  EXPECT_EQ(after.waits - before.waits, steps.size());
  EXPECT_EQ(after.copies - before.copies, 2 * steps.size());
  EXPECT_EQ(after.graphs_run - before.graphs_run, steps.size());
}

/// There is room for two of these sequences.
TEST(DeviceShard, LetsDecodesTakeTurnsWhereTheirScoresDoNotFit) {
  random_model m(small_shape(1, 32), {});
  std::vector<prompt> prompts;
  for (uint32_t i = 0; i < 5; ++i) prompts.push_back(random_prompt(i == 4 ? 68 : 4, 53, i));
  auto want = run(m.weights, prompts, {});
  for (bool graphs : {true, false}) {
    emulated::device d;
    auto shard = shard_on(
        d, emulated_row, m.weights,
        {.shard = shard_config_for(m.weights, prompts, {}), .graphs = graphs, .score_tiles = 4});
    ASSERT_TRUE(shard);
    std::vector<std::unique_ptr<planned>> steps;
    for (uint32_t from = 0; from < 4; ++from) {
      auto step = std::make_unique<planned>();
      for (uint32_t p = 0; p < 4; ++p) add_entry(*step, prompts, p, from, 1, 16);
      uint32_t begin = from == 0 ? 0 : 64 + from;
      add_entry(*step, prompts, 4, begin, from == 0 ? 65 : 1, 16);
      steps.push_back(std::move(step));
    }
    EXPECT_TRUE(run_on_device(**shard, 53, steps, 5) == want) << graphs;
  }
}

TEST(DeviceShard, MakesAGraphForEachBucketOfSequencesAndTiles) {
  random_model m(small_shape(1, 32), {});
  std::vector<prompt> prompts{random_prompt(10, 53, 1)};
  shard_config config = shard_config_for(m.weights, prompts, {});
  config.pages = 12, config.logit_rows = config.step_tokens = 10;  // 192 tokens: 3 tiles
  emulated::device d;
  auto shard = shard_on(d, emulated_row, m.weights, {config});
  ASSERT_TRUE(shard);
  EXPECT_EQ((*shard)->graphs(), 5u * 3u);  // 1, 2, 4, 8, 10 sequences; 1, 2, 3 tiles
}

TEST(DeviceShard, RefusesPlansThatDoNotFitUntouched) {
  random_model m(small_shape(2, 96), {});
  std::vector<prompt> prompts{random_prompt(11, 53, 1)};
  running r = start(m.weights, prompts, {.page_tokens = 4}, true);
  auto steps = plan_all(prompts, {.page_tokens = 4});
  auto refused = [&](auto change) {
    planned p = *steps[0];
    change(p);
    return !r.shard->execute(p.plan, p.data(53));
  };
  EXPECT_TRUE(refused([](planned& p) { p.ids[5] = 53; }));
  EXPECT_TRUE(refused([](planned& p) { p.plan.pages[1] = 3; }));
  EXPECT_TRUE(refused([](planned& p) { p.plan.tokens = 10; }));
  EXPECT_TRUE(
      refused([](planned& p) { p.plan.pages.assign(4, 0), p.plan.entries[0].page_count = 4; }));
  EXPECT_TRUE(refused([](planned& p) { p.plan.pages.resize(1000, 0); }));
  EXPECT_EQ(r.device->finish(), 0);
  EXPECT_TRUE(zero(r.shard->pool()) && zero(r.shard->scratch()));
}

TEST(DeviceShard, SaysThatTheDeviceHasNoRoom) {
  random_model m(small_shape(1, 32), {});
  std::vector<prompt> prompts{random_prompt(3, 53, 1)};
  device_config config{shard_config_for(m.weights, prompts, {})};
  emulated::device d;
  auto loaded = load_on(d, m.weights, config.shard.part);
  ASSERT_TRUE(loaded) << loaded.why().text;
  d.run_out();
  auto shard = device_shard::make(d, emulated_row, *std::move(loaded), config);
  ASSERT_FALSE(shard);
  EXPECT_NE(shard.why().text.find("no room on the device for 1 pages"), std::string::npos)
      << shard.why().text;
  auto again = load_on(d, m.weights, config.shard.part);
  ASSERT_FALSE(again);
  EXPECT_NE(again.why().text.find("bytes of weights on the device"), std::string::npos);
}

TEST(DeviceShard, SaysThatTheDeviceFailedAndGivesNoLogits) {
  random_model m(small_shape(1, 32), {});
  std::vector<prompt> prompts{random_prompt(3, 53, 1)};
  running r = start(m.weights, prompts, {}, true);
  auto steps = plan_all(prompts, {});
  step_data data = steps[0]->data(53);
  std::vector<float> before = steps[0]->logits;
  r.device->break_down();
  auto done = r.shard->execute(steps[0]->plan, data);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.why().text, "shard: a step failed on the device: CUDA error 719");
  EXPECT_TRUE(steps[0]->logits == before);
}

std::filesystem::path vectors() {
  const char* set = std::getenv("LETHE_VECTORS");
  return set ? set : places::vectors;
}

/// Two prompts, one of which is answered while the other is still put in.
void expect_a_files_bits(const std::filesystem::path& path, std::optional<dtype> quantize,
                         uint32_t tokens) {
  auto model = load_file(path, quantize);
  ASSERT_TRUE(model) << model.why().text;
  const model_weights& w = (*model)->weights();
  emulated::device device;
  speech s{{random_prompt(tokens, w.shape.vocab, 1), random_prompt(1, w.shape.vocab, 2)}, 2};
  EXPECT_EQ(exact_fault({device, emulated_row}, w, s, {.page_tokens = 4, .chunk = 2}), "");
  EXPECT_EQ(device.fault(), "");
}

TEST(DeviceShard, GivesTheCpusBitsOnPublishedModels) {
  if (!std::filesystem::exists(vectors() / "models")) GTEST_SKIP() << "no test vectors";
  for (const char* name : {"llama-tiny", "llama-tiny-f16", "qwen2-tiny", "qwen3-tiny"}) {
    SCOPED_TRACE(name);
    expect_a_files_bits(vectors() / "models" / name, {}, 4);
  }
}
TEST(DeviceShard, GivesTheCpusBitsOnEmber) {
  std::filesystem::path models = std::filesystem::path(places::source) / "models";
  expect_a_files_bits(models / "ember-draft", dtype::q8_0, 3);
  expect_a_files_bits(models / "ember", dtype::q4_k, 2);
}

}  // namespace
}  // namespace lethe::testing

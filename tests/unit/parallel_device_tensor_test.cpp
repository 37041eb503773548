#include "tests/places.hpp"
#include "tests/unit/parallel_device_models.hpp"
#include "tests/unit/parallel_device_ranks.hpp"
#include "tests/unit/parallel_random_model.hpp"

// A model's steps by tensor cores: near the CPU's logits, and each row the same bits however it
// came to be computed.

namespace lethe::testing {
namespace {

constexpr dtype bf16 = dtype::bf16, f32 = dtype::f32, q8 = dtype::q8_0;
using types = random_model::types;

std::vector<logit_rows> on_device(const model_weights& w, const std::vector<prompt>& prompts,
                                  const manner& how, uint32_t decodes, bool graphs = true) {
  emulated::device device;
  auto shard =
      shard_on(device, emulated_tensor_row, w, {shard_config_for(w, prompts, how), graphs});
  if (!shard) throw std::runtime_error(shard.why().text);
  auto got =
      run_on_device(**shard, w.shape.vocab, plan_mixed(prompts, how, decodes), prompts.size());
  EXPECT_EQ(device.fault(), "");
  return got;
}

std::filesystem::path vectors() {
  const char* set = std::getenv("LETHE_VECTORS");
  return set ? set : places::vectors;
}
std::filesystem::path ember_draft() {
  return std::filesystem::path(places::source) / "models/ember-draft";
}

std::vector<prompt> three_prompts() {
  return {random_prompt(20, 53, 1), random_prompt(1, 53, 2), random_prompt(6, 53, 3)};
}

TEST(DeviceTensor, IsNearTheCpusLogits) {
  for (types stored : {types{bf16, bf16, bf16}, types{bf16, q8, f32}}) {
    random_model m(rich_shape(12), stored);
    auto want = run(m.weights, three_prompts(), {});
    auto got = on_device(m.weights, three_prompts(), {.chunk = 13}, 3);
    EXPECT_EQ(too_far(got, want, kv_type::f32, stored.mlp), "");
    EXPECT_FALSE(got == want) << "then nothing was rounded";
  }
}

/// Whole prompts, chunks, and decodes from the first token on; other pages; alone and together;
/// with graphs and without.
TEST(DeviceTensor, GivesARowTheSameBitsHoweverItCame) {
  random_model m(rich_shape(12), {bf16, bf16, bf16});
  auto prompts = three_prompts();
  auto want = on_device(m.weights, prompts, {}, 0);
  EXPECT_TRUE(on_device(m.weights, prompts, {.page_tokens = 4, .chunk = 9}, 2) == want);
  EXPECT_TRUE(on_device(m.weights, {prompts[2]}, {.chunk = 1}, 0)[0] == want[2]);
  EXPECT_TRUE(on_device(m.weights, {prompts[0]}, {}, 1, false)[0] == want[0]);
}

/// Down and o are cut along K, or not, and gathered.
TEST(DeviceTensor, GivesRanksTheBitsOfOne) {
  random_model m(rich_shape(6), {bf16, bf16, bf16});
  std::vector<prompt> prompts{random_prompt(11, 53, 1), random_prompt(1, 53, 2),
                              random_prompt(4, 53, 3)};
  auto want = on_device(m.weights, prompts, {}, 0);
  for (cut ranks : {cut{2, 1}, cut{2, 2}}) {
    device_ranks r(m.weights, prompts, {.ranks = ranks, .chunk = 5},
                   {.graphs = false, .row = &emulated_tensor_row});
    r.start();
    EXPECT_TRUE(r.run_all(plan_mixed(prompts, r.how, 2)) == want)
        << ranks.tensor << " x " << ranks.pipeline;
    r.end();
  }
}

std::string file_fault(const std::filesystem::path& path, uint32_t tokens,
                       kv_type kv = kv_type::f32) {
  auto model = load_file(path);
  if (!model) return model.why().text;
  const model_weights& w = (*model)->weights();
  speech s{{random_prompt(tokens, w.shape.vocab, 1), random_prompt(1, w.shape.vocab, 2)}, 2, kv};
  emulated::device device;
  auto off = tensor_fault({device, emulated_tensor_row}, w, s, {.page_tokens = 4, .chunk = 5});
  return off + device.fault();
}

/// As their files have them: in f32, of which attention alone is by tensor cores, f16 and bf16.
TEST(DeviceTensor, IsNearPublishedModelsAndSaysTheSameInCompany) {
  if (!std::filesystem::exists(vectors() / "models")) GTEST_SKIP() << "no test vectors";
  for (const char* name : {"llama-tiny-f16", "llama-tiny-sharded", "qwen2-tiny", "qwen3-tiny"})
    EXPECT_EQ(file_fault(vectors() / "models" / name, 7), "") << name;
}

TEST(DeviceTensor, IsNearEmberAndSaysTheSameInCompany) {
  EXPECT_EQ(file_fault(ember_draft(), 8), "");
  EXPECT_EQ(file_fault(ember_draft(), 8, kv_type::int8), "");
}

TEST(DeviceTensor, SaysEmbersWords) {
  auto model = load_file(ember_draft());
  ASSERT_TRUE(model) << model.why().text;
  const model_weights& w = (*model)->weights();
  speech s{{random_prompt(4, w.shape.vocab, 1)}, 6};
  emulated::device device;
  said got = say_on_device({device, emulated_tensor_row}, w, s, {}, true), want = say_on_cpu(w, s);
  EXPECT_EQ(got.ids, want.ids);
  EXPECT_FALSE(got == want) << "then nothing was rounded";
}

/// The longest context has room for its spans' sums, also where it is shorter than a span.
TEST(DeviceTensor, HasRoomForOneDecodeOfTheLongestContext) {
  random_model m(small_shape(1, 32), {bf16, bf16, bf16});
  std::vector<prompt> prompts{random_prompt(5, 53, 1), random_prompt(3, 53, 2)};
  auto want = on_device(m.weights, prompts, {}, 0);
  emulated::device device;
  auto shard = shard_on(
      device, emulated_tensor_row, m.weights,
      {.shard = shard_config_for(m.weights, prompts, {}), .graphs = true, .score_tiles = 1});
  ASSERT_TRUE(shard);
  EXPECT_TRUE(run_on_device(**shard, 53, plan_mixed(prompts, {}, 5), 2) == want);
  EXPECT_EQ(device.fault(), "");
}

}  // namespace
}  // namespace lethe::testing

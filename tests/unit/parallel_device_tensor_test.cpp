#include <filesystem>

#include "runtime/model/checkpoint.hpp"
#include "runtime/model/load.hpp"
#include "tests/places.hpp"
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

/// Differences are at most this share of a row's largest logit: a dozen roundings to 2^-8 one after
/// the other, some of which are lost in sums.
constexpr float share = 0x1p-5f;

void expect_near(const std::vector<logit_rows>& got, const std::vector<logit_rows>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t p = 0; p < got.size(); ++p)
    for (size_t r = 0; r < want[p].size(); ++r) {
      float largest = 0, off = 0;
      for (size_t i = 0; i < want[p][r].size(); ++i) {
        largest = std::max(largest, std::abs(want[p][r][i]));
        off = std::max(off, std::abs(got[p][r][i] - want[p][r][i]));
      }
      EXPECT_LE(off, share * largest) << "prompt " << p << " row " << r;
    }
}

std::vector<prompt> three_prompts() {
  return {random_prompt(20, 53, 1), random_prompt(1, 53, 2), random_prompt(6, 53, 3)};
}

TEST(DeviceTensor, IsNearTheCpusLogits) {
  for (types stored : {types{bf16, bf16, bf16}, types{bf16, q8, f32}}) {
    random_model m(rich_shape(12), stored);
    auto want = run(m.weights, three_prompts(), {});
    auto got = on_device(m.weights, three_prompts(), {.chunk = 13}, 3);
    expect_near(got, want);
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

size_t likeliest(const std::vector<float>& logits) {
  return size_t(std::ranges::max_element(logits) - logits.begin());
}

/// As its file has it, in f16.
TEST(DeviceTensor, IsNearEmbersLogitsAndSaysTheSameWords) {
  auto opened = checkpoint::open(std::filesystem::path(places::source) / "models/ember-draft");
  ASSERT_TRUE(opened) << opened.why().text;
  auto loaded = loaded_model::load(*opened, {});
  ASSERT_TRUE(loaded) << loaded.why().text;
  const model_weights& w = (*loaded)->weights();
  std::vector<prompt> prompts{random_prompt(10, w.shape.vocab, 1)};
  auto want = run(w, prompts, {}), got = on_device(w, prompts, {}, 2);
  expect_near(got, want);
  for (size_t r = 0; r < want[0].size(); ++r)
    EXPECT_EQ(likeliest(got[0][r]), likeliest(want[0][r])) << r;
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

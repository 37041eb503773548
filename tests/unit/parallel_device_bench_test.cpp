#include <gtest/gtest.h>

#include "bench/gpu/llama_shapes.hpp"
#include "bench/gpu/model_check.hpp"
#include "bench/gpu/model_measure.hpp"
#include "bench/gpu/shares.hpp"
#include "kernels/panels.hpp"
#include "tests/cuda/emulated_device.hpp"
#include "tests/cuda/emulated_row.hpp"

// The bench of models on a GPU (bench/gpu), as far as it is arithmetic, and its steps on an
// emulated device.

namespace lethe {
extern const cpu_row reference;
}

namespace lethe::bench {
namespace {

model_shape tiny_shape() {
  model_shape s;
  s.family = "llama";
  s.layers = 2, s.hidden = 64, s.heads = 4, s.kv_heads = 2, s.head_dim = 16, s.ffn = 96;
  s.vocab = 80, s.context_max = 64;
  s.rope.rotary = 16;
  return s;
}

run_sizes tiny_sizes() {
  return {.streams = {1, 2, 3},
          .context = 9,
          .prompts = {7, 20},
          .warm_ups = 1,
          .decodes = 3,
          .prefills = 2,
          .page_tokens = 8};
}

std::unique_ptr<random_weights> weights_of(const model_shape& shape, dtype type) {
  auto made = random_weights::make(shape, type);
  EXPECT_TRUE(made) << made.why().text;
  return *std::move(made);
}

// Llama-3.2-1B: a layer has 60.8 M weights, the head 262.7 M; 1,236 M together. Llama-3.1-8B:
// 218.1 M and 525.3 M; 7,505 M.
TEST(GpuModelBench, ReadsAllWeightsButTheTokensTableOnceAToken) {
  struct {
    model_shape shape;
    double weights;
  } all[] = {{shape_1b(), 16 * 60'817'408.0 + 262'668'288.0},
             {shape_8b(), 32 * 218'103'808.0 + 525'336'576.0}};
  for (const auto& [shape, weights] : all) {
    double norms = shape.layers * 2.0 * shape.hidden * 4;
    EXPECT_EQ(weight_bytes(weights_of(shape, dtype::bf16)->weights()), weights * 2 + norms);
    EXPECT_EQ(weight_bytes(weights_of(shape, dtype::q8_0)->weights()), weights * 34 / 32 + norms);
  }
}

TEST(GpuModelBench, CountsKeysAndValuesOfEveryStream) {
  auto w = weights_of(shape_8b(), dtype::q8_0);
  // Two of 8 heads of 128 numbers of two bytes in 32 layers: 128 KiB a token.
  double more = decode_bytes(w->weights(), kv_type::bf16, 64, 284) - weight_bytes(w->weights());
  EXPECT_EQ(more, 64 * 284 * 131072.0);
}

TEST(GpuModelBench, AsksOfAPromptWhatItsProductsAndAttentionAre) {
  const device_limits most{.bytes = 0, .bf16_ops = 1e12, .int8_ops = 2e12};
  // A prompt of two: layers but the last in full, of that keys and values of two tokens (with the
  // queries), the rest and the head of one. Pairs of query and key: three a layer, two in the last.
  const double whole = 218'103'808, projected = 6144.0 * 4096, rest = whole - projected;
  const double products = 2 * (2 * (31 * whole + projected) + rest + 525'336'576);
  const double attention = 4.0 * 4096 * (3 * 31 + 2);
  auto bf16 = weights_of(shape_8b(), dtype::bf16), q8 = weights_of(shape_8b(), dtype::q8_0);
  EXPECT_DOUBLE_EQ(prompt_seconds(bf16->weights(), most, 2), (products + attention) / 1e12);
  EXPECT_DOUBLE_EQ(prompt_seconds(q8->weights(), most, 2), products / 2e12 + attention / 1e12);
}

TEST(GpuModelBench, TakesTheBetterOfTwoPeaksForALimit) {
  device_limits most = limits_of(3e12, {.bf16 = 6e14, .int8 = 13e14, .bf16_cublaslt = 7e14});
  EXPECT_EQ(most.bytes, 3e12);
  EXPECT_EQ(most.bf16_ops, 7e14);
  EXPECT_EQ(most.int8_ops, 14e14);
  EXPECT_EQ(limits_of(1, {.bf16 = 6e14, .int8 = 13e14}).int8_ops, 13e14);
}

TEST(GpuModelBench, ClaimsNothingBetweenCopiesThatDiffer) {
  copy_rates near{.before = 2e12, .after = 3e12}, far{.before = 2e12, .after = 3.1e12};
  EXPECT_EQ(near.better(), 3e12);
  EXPECT_TRUE(near.steady());
  EXPECT_FALSE(far.steady());
}

TEST(GpuModelBench, MakesTheSameWeightsInWhateverPieces) {
  for (dtype type : {dtype::bf16, dtype::q8_0}) {
    auto w = weights_of(tiny_shape(), type);
    const matrix& m = w->weights().layers[1].mlp.down;  // 64 rows of 96
    std::vector<std::byte> whole(matrix_bytes(type, m.rows, m.cols)), cut(whole);
    w->read(m, {0, 4, 0, 96}, whole.data());
    size_t panel = panel_bytes(type, 96);
    for (uint32_t p = 0; p < 4; ++p) {
      std::vector<std::byte> part(panel_bytes(type, 64));
      w->read(m, {p, p + 1, 32, 96}, part.data());
      size_t block = size_t{32 / block_elements(type)} * panel_block_bytes(type);
      size_t filled = 2 * block;
      EXPECT_TRUE(std::equal(part.begin(), part.begin() + std::ptrdiff_t(filled),
                             whole.begin() + std::ptrdiff_t(p * panel + block)));
    }
    EXPECT_FALSE(std::equal(whole.begin(), whole.begin() + std::ptrdiff_t(panel),
                            whole.begin() + std::ptrdiff_t(panel)));
  }
}

/// Of sums of as many numbers as a row has, each times one of size one.
double mean_square(const matrix& m) {
  std::vector<float> row(m.cols), scratch(m.cols);
  double sum = 0;
  for (uint32_t r = 0; r < m.rows; ++r) {
    reference.row_to_float(m, r, row.data());
    for (float each : row) sum += double(each) * double(each);
  }
  return sum / m.rows;
}

TEST(GpuModelBench, MakesWeightsThatKeepTheSizeOfWhatTheyMultiply) {
  for (dtype type : {dtype::bf16, dtype::q8_0}) {
    auto held = held_weights::of(*weights_of(tiny_shape(), type));
    ASSERT_TRUE(held) << held.why().text;
    for (const auto& l : held->weights.layers)
      for (const matrix* m : {&l.attention.q, &l.attention.o, &l.mlp.gate, &l.mlp.down}) {
        EXPECT_GT(mean_square(*m), 0.4) << name_of(type);
        EXPECT_LT(mean_square(*m), 2.2) << name_of(type);
      }
    for (uint32_t i = 0; i < 64; ++i) {
      EXPECT_GE(held->weights.norm[i], 0.9f);
      EXPECT_LE(held->weights.norm[i], 1.1f);
    }
  }
}

TEST(GpuModelBench, ChecksStepsOnADeviceAgainstCores) {
  for (dtype type : {dtype::bf16, dtype::q8_0}) {
    auto weights = weights_of(tiny_shape(), type);
    auto held = held_weights::of(*weights);
    ASSERT_TRUE(held) << held.why().text;
    auto want = logits_on_cores(*held, 1);
    ASSERT_TRUE(want) << want.why().text;
    ASSERT_EQ(want->size(), 7u * 80);
    for (const cuda_row* row : {&emulated_row, &emulated_tensor_row}) {
      emulated::device on;
      auto got = logits_on_device(on, *row, *weights);
      ASSERT_TRUE(got) << got.why().text;
      EXPECT_TRUE(are_right(row->arithmetic, type, *got, *want, 80)) << name_of(type) << row->name;
      (*got)[3 * 80 + 7] += 0.25f;
      EXPECT_FALSE(are_right(row->arithmetic, type, *got, *want, 80));
    }
  }
}

struct told {
  std::vector<std::string> lines;
  uint32_t copies = 0;
};

told measured_on(emulated::device& on, const cuda_row& row, dtype type) {
  told all;
  measuring m{
      .on = on,
      .row = row,
      .model = "tiny",
      .device = "emulated",
      .commit = "none",
      .peaks = {.bf16 = 1e12, .int8 = 2e12},
      .copy_bytes_per_s = [&all] { return 1e9 * ++all.copies; },
      .say = [&all](const std::string& line, const std::string&) { all.lines.push_back(line); },
      .loading = {}};
  auto done = measure(m, *weights_of(tiny_shape(), type), tiny_sizes());
  EXPECT_TRUE(done) << done.why().text;
  return all;
}

bool says(const std::string& line, const std::string& what) {
  return line.find(what) != std::string::npos;
}

TEST(GpuModelBench, RunsPromptsAndDecodesByGraphs) {
  for (const cuda_row* row : {&emulated_row, &emulated_tensor_row})
    for (dtype type : {dtype::bf16, dtype::q8_0}) {
      emulated::device on;
      told all = measured_on(on, *row, type);
      ASSERT_EQ(all.lines.size(), 5u);
      EXPECT_TRUE(says(all.lines[0], "\"bench\":\"model_prefill\"")) << all.lines[0];
      EXPECT_TRUE(says(all.lines[1], "\"tokens\":20,")) << all.lines[1];
      EXPECT_TRUE(says(all.lines[4], "\"streams\":3,\"context\":9,")) << all.lines[4];
      // Copies at 1 and 2 GB/s, 3 and 4, 5 and 6.
      EXPECT_TRUE(says(all.lines[2], "\"steady\":false")) << all.lines[2];
      EXPECT_TRUE(says(all.lines[3], "\"copy_gb_per_s\":[3.0,4.0],\"steady\":true"))
          << all.lines[3];
      EXPECT_EQ(on.counted().graphs_run, 3u * 4);  // decodes alone
      EXPECT_EQ(on.left_full().size(), 2u) << "weights and what they were copied through alone";
      EXPECT_EQ(on.fault(), "");
    }
}

}  // namespace
}  // namespace lethe::bench

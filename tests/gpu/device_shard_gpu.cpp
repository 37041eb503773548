#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "parallel/cuda/cuda_accelerator.hpp"
#include "tests/unit/parallel_device_run.hpp"
#include "tests/unit/parallel_random_model.hpp"

// A model's steps on a GPU, with graphs and without, against the CPU's shard.

namespace lethe::testing {
namespace {

model_shape shape_of_all() {
  model_shape s = small_shape(3, 96);
  s.qkv_bias = s.o_bias = s.mlp_bias = s.qk_norm = s.tied = true;
  s.window = {0, 5, 70};
  return s;
}

bool same_bits(accelerator& gpu, random_model::types types, kv_type kv, bool graphs) {
  random_model m(shape_of_all(), types);
  std::vector<prompt> prompts{random_prompt(139, 53, 1), random_prompt(1, 53, 2),
                              random_prompt(18, 53, 3)};
  manner how{.page_tokens = 8, .chunk = 37, .kv = kv};
  auto want = run(m.weights, prompts, {.kv = kv});
  auto shard = shard_on(gpu, cuda, m.weights, {shard_config_for(m.weights, prompts, how), graphs});
  if (!shard) throw std::runtime_error(shard.why().text);
  return run_on_device(**shard, 53, plan_mixed(prompts, how, 9), prompts.size()) == want;
}

/// By tensor cores: a step's rows the same however they came, and near the CPU's.
bool same_in_any_company(accelerator& gpu, kv_type kv) {
  constexpr dtype bf16 = dtype::bf16;
  random_model m(shape_of_all(), {bf16, bf16, bf16});
  std::vector<prompt> prompts{random_prompt(139, 53, 1), random_prompt(1, 53, 2),
                              random_prompt(18, 53, 3)};
  auto by = [&](manner how, uint32_t decodes, bool graphs) {
    how.kv = kv;
    auto shard =
        shard_on(gpu, cuda_tensor, m.weights, {shard_config_for(m.weights, prompts, how), graphs});
    if (!shard) throw std::runtime_error(shard.why().text);
    return run_on_device(**shard, 53, plan_mixed(prompts, how, decodes), prompts.size());
  };
  auto whole = by({}, 0, false), want = run(m.weights, prompts, {.kv = kv});
  for (size_t p = 0; p < want.size(); ++p)
    for (size_t r = 0; r < want[p].size(); ++r)
      for (size_t i = 0; i < want[p][r].size(); ++i) {
        float largest = std::abs(
            *std::ranges::max_element(want[p][r], {}, [](float x) { return std::abs(x); }));
        if (!(std::abs(whole[p][r][i] - want[p][r][i]) <= 0x1p-5f * largest)) return false;
      }
  return by({.page_tokens = 8, .chunk = 37}, 9, true) == whole &&
         by({.chunk = 1}, 0, true) == whole;
}

int run_all(accelerator& gpu) {
  constexpr dtype f32 = dtype::f32, bf16 = dtype::bf16, q8 = dtype::q8_0;
  int failed = 0;
  for (auto types : {random_model::types{f32, f32, f32}, {bf16, q8, bf16}, {q8, q8, q8}})
    for (kv_type kv : {kv_type::f32, kv_type::bf16, kv_type::int8})
      for (bool graphs : {false, true}) {
        bool same = same_bits(gpu, types, kv, graphs);
        std::printf("%s %s %s, keys and values %d, graphs %d: %s\n", name_of(types.attention),
                    name_of(types.mlp), name_of(types.vocabulary), int(kv), graphs,
                    same ? "ok" : "other bits than the CPU's");
        failed += !same;
      }
  for (kv_type kv : {kv_type::f32, kv_type::bf16, kv_type::int8}) {
    bool same = same_in_any_company(gpu, kv);
    std::printf("by tensor cores, keys and values %d: %s\n", int(kv),
                same ? "ok" : "other bits in other company, or too far from the CPU's");
    failed += !same;
  }
  return failed != 0;
}

}  // namespace
}  // namespace lethe::testing

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::printf("skipped: no GPU\n");
    return 77;
  }
  auto gpu = lethe::open_cuda(0);
  if (!gpu) {
    std::printf("FAILED: %s\n", gpu.why().text.c_str());
    return 1;
  }
  return lethe::testing::run_all(**gpu);
}

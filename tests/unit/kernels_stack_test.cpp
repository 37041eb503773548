#include <gtest/gtest.h>

#include <cstring>

#include "kernels/cpu/amx_emulated.hpp"
#include "kernels/cpu_row.hpp"
#include "kernels/kernel_stack.hpp"
#include "tests/unit/kernels_attend_paged.hpp"
#include "tests/unit/kernels_matmul_formats.hpp"
#include "tests/unit/kernels_matmul_input.hpp"
#include "tests/unit/kernels_rows_here.hpp"
#include "tests/unit/own_stack.hpp"

namespace lethe {
namespace {

/// How deep `work` reaches, from the frame that calls it.
size_t depth_of(const std::function<void()>& work) {
  own_stack stack;
  stack.run(work);
  return stack.depth();
}

std::vector<const cpu_row*> all_rows_here() {
  return with_rounding_rows(rows_here({&amx_emulated}));
}

class KernelStack : public testing::TestWithParam<dtype> {};

/// What kernels leave on a stack is wiped as deep as kernel_stack_bytes.
TEST_P(KernelStack, ProductsReachNoDeeperThanIsWiped) {
  formats::random random{5};
  formats::tensor w(GetParam(), 16 * 33, 2048, random);
  for (uint32_t m : {1u, 2u, 6u, 7u, 128u, 132u}) {
    std::vector<float> ones(size_t{m} * w.cols, 1.0f), y(size_t{m} * w.rows);
    input x(m, w.cols, w.cols, ones);
    for (const cpu_row* row : all_rows_here()) {
      size_t depth = depth_of([&] {
        row->matmul(w.panels, {0, w.rows, 0, segments}, x.view(*row), y.data(), w.rows);
      });
      EXPECT_GT(depth, 1000u) << "nothing was measured";
      EXPECT_LE(depth, kernel_stack_bytes) << row->name << " with " << m << " rows";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, KernelStack, testing::ValuesIn(formats::all_types),
                         [](const auto& p) { return name_of(p.param); });

TEST(KernelStackDepth, AttentionReachesNoDeeperThanIsWiped) {
  for (kv_type type : {kv_type::f32, kv_type::bf16, kv_type::int8}) {
    for (uint32_t chunk : {0u, 1u}) {
      attention_case c{.tokens = 200, .heads = 4, .type = type, .chunk = chunk, .block = 32};
      attention_input in = input_of(c);
      for (const cpu_row* row : all_rows_here())
        EXPECT_LE(depth_of([&] { run_case(*row, c, in); }), kernel_stack_bytes) << row->name;
    }
  }
}

/// The measure sees what lies deeper.
TEST(KernelStackDepth, SeesADeepFrame) {
  size_t depth = depth_of([] {
    volatile char deep[kernel_stack_bytes + 4096];
    deep[0] = 1;
    (void)deep[0];
  });
  EXPECT_GT(depth, kernel_stack_bytes);
}

template <dtype T>
void multiply_32_rows(const cpu_row& row) {
  formats::random random{7};
  formats::tensor w(T, 48, 512, random);
  std::vector<float> ones(size_t{32} * w.cols, 1.0f), y(size_t{32} * w.rows);
  input x(32, w.cols, w.cols, ones);
  row.matmul(w.panels, {0, w.rows, 0, segments}, x.view(row), y.data(), w.rows);
}

/// Twice 64 queries, which see 32 and 64 keys.
template <kv_type T>
void attend_with_64_queries(const cpu_row& row) {
  attention_case c{.tokens = 64, .heads = 2, .type = T, .block = 32};
  run_case(row, c, input_of(c));
}

/// What registers of tiles held of a request no later code of the thread can store.
TEST(KernelTiles, HoldNothingAfterAProductOrAttention) {
  if (!emulates_here()) GTEST_SKIP() << "this machine can't emulate tiles";
  auto expect_given_back = [](const cpu_row& row, auto kernel, size_t products) {
    size_t before = products_in_tiles;
    kernel(row);
    EXPECT_EQ(products_in_tiles, before + products);
    const char none[sizeof tiles_of_thread] = {};
    EXPECT_EQ(0, std::memcmp(&tiles_of_thread, none, sizeof none));
  };
  expect_given_back(amx_emulated, multiply_32_rows<dtype::q8_0>, 2 * 3 * 16);
  expect_given_back(amx_tensor_emulated, multiply_32_rows<dtype::bf16>, 2 * 3 * 16);
  // Of 4 tiles of queries: scores of 4 of keys, and each byte of weights with 4 of values.
  expect_given_back(amx_emulated, attend_with_64_queries<kv_type::int8>, 2 * (4 * 4 + 2 * 4 * 4));
  // The same in halves: numbers of keys, and keys.
  expect_given_back(amx_tensor_emulated, attend_with_64_queries<kv_type::bf16>,
                    2 * (4 * 4 * 2 + 4 * 4 * 2));
}

/// Whether the processor has tiles to save for this thread.
bool tiles_are_in_use() {
  constexpr uint32_t tile_data = 1u << 18;
  uint32_t low, high;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(1));
  return (low & tile_data) != 0;
}

TEST(KernelTiles, AreGivenBackByTheProcessorsRow) {
  const cpu_row& amx = *find_cpu_row("amx");
  EXPECT_NE(amx.attend, find_cpu_row("avx512vnni")->attend);
  if (!runs_here(amx)) GTEST_SKIP() << "this machine has no AMX";
  for (auto kernel : {multiply_32_rows<dtype::q8_0>, attend_with_64_queries<kv_type::int8>}) {
    kernel(amx);
    EXPECT_FALSE(tiles_are_in_use());
  }
  if (runs_here(amx_tensor)) {
    for (auto kernel : {multiply_32_rows<dtype::bf16>, attend_with_64_queries<kv_type::bf16>}) {
      kernel(amx_tensor);
      EXPECT_FALSE(tiles_are_in_use());
    }
  }
  struct {
    uint8_t palette = 1, nothing[15] = {};
    uint16_t row_bytes[16] = {64};
    uint8_t rows[16] = {16};
  } shape;
  std::vector<char> numbers(16 * 64, 1);
  asm volatile("ldtilecfg %0\n\ttileloadd (%1,%2,1), %%tmm0" ::"m"(shape), "r"(numbers.data()),
               "r"(size_t{64})
               : "memory");
  EXPECT_TRUE(tiles_are_in_use()) << "the measure sees nothing";
  asm volatile("tilerelease");
  EXPECT_FALSE(tiles_are_in_use());
}

}  // namespace
}  // namespace lethe

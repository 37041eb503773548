#include <gtest/gtest.h>

#include "kernels/cpu_row.hpp"
#include "kernels/kernel_stack.hpp"
#include "tests/unit/kernels_attend_paged.hpp"
#include "tests/unit/kernels_matmul_formats.hpp"
#include "tests/unit/kernels_matmul_input.hpp"
#include "tests/unit/own_stack.hpp"

namespace lethe {
namespace {

/// How deep `work` reaches, from the frame that calls it.
size_t depth_of(const std::function<void()>& work) {
  own_stack stack;
  stack.run(work);
  return stack.depth();
}

class KernelStack : public testing::TestWithParam<dtype> {};

/// What kernels leave on a stack is wiped as deep as kernel_stack_bytes.
TEST_P(KernelStack, ProductsReachNoDeeperThanIsWiped) {
  formats::random random{5};
  formats::tensor w(GetParam(), 16 * 33, 2048, random);
  for (uint32_t m : {1u, 2u, 7u, 132u}) {
    std::vector<float> ones(size_t{m} * w.cols, 1.0f), y(size_t{m} * w.rows);
    input x(m, w.cols, w.cols, ones);
    for (const cpu_row* row : cpu_rows()) {
      if (!runs_here(*row)) continue;
      size_t depth = depth_of([&] {
        row->matmul(w.panels, {0, w.rows, 0, segments}, x.view(), y.data(), w.rows);
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
    attention_case c{.tokens = 200, .heads = 4, .type = type, .block = 32};
    attention_input in = input_of(c);
    for (const cpu_row* row : cpu_rows()) {
      if (!runs_here(*row)) continue;
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

}  // namespace
}  // namespace lethe

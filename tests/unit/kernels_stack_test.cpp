#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>

#include <cstring>
#include <functional>

#include "kernels/cpu_row.hpp"
#include "kernels/kernel_stack.hpp"
#include "tests/unit/kernels_matmul_formats.hpp"
#include "tests/unit/kernels_matmul_input.hpp"

namespace lethe {
namespace {

constexpr size_t stack_bytes = size_t{2} << 20;

/// How deep `work` reaches on a stack of its own, from the frame that calls it.
size_t depth_of(const std::function<void()>& work) {
  void* stack = mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  EXPECT_NE(stack, MAP_FAILED);
  struct call {
    const std::function<void()>& work;
    const char* frame = nullptr;
  } c{work};
  pthread_attr_t on;
  pthread_attr_init(&on);
  pthread_attr_setstack(&on, stack, stack_bytes);
  pthread_t thread;
  auto body = [](void* given) -> void* {
    auto& mine = *static_cast<call*>(given);
    mine.frame = static_cast<const char*>(__builtin_frame_address(0));
    mine.work();
    return nullptr;
  };
  // Memory that nobody wrote is zero; a kernel leaves something else.
  EXPECT_EQ(0, pthread_create(&thread, &on, body, &c));
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&on);
  const char* low = static_cast<const char*>(stack);
  size_t untouched = 0;
  while (untouched < stack_bytes && low[untouched] == 0) ++untouched;
  size_t depth = size_t(c.frame - (low + untouched));
  munmap(stack, stack_bytes);
  return depth;
}

class KernelStack : public testing::TestWithParam<dtype> {};

/// What kernels leave on a stack is wiped as deep as kernel_stack_bytes.
TEST_P(KernelStack, ProductsReachNoDeeperThanIsWiped) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers make frames larger";
#endif
  formats::random random{5};
  formats::tensor w(GetParam(), 16 * 33, 2048, random);
  for (uint32_t m : {1u, 2u, 7u, 100u}) {
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

/// The measure sees what lies deeper.
TEST(KernelStackMeasure, SeesADeepFrame) {
  size_t depth = depth_of([] {
    volatile char deep[kernel_stack_bytes + 4096];
    deep[0] = 1;
    (void)deep[0];
  });
  EXPECT_GT(depth, kernel_stack_bytes);
}

}  // namespace
}  // namespace lethe

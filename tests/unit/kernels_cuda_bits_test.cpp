#include <gtest/gtest.h>

#include <ostream>

#include "tests/cuda/emulated_row.hpp"
#include "tests/cuda/guarded.hpp"

namespace lethe {

void PrintTo(const check& c, std::ostream* out) { *out << c.name; }

namespace {

using emulated::machine;
using emulated::order;

class CudaBits : public testing::TestWithParam<check> {};

TEST_P(CudaBits, AreTheReferenceRowsInAnyOrderOfThreads) {
  for (order o : {order::forwards, order::backwards, order::shuffled}) {
    machine m(o);
    target t = emulated::target_on(emulated_row, m.stream());
    ASSERT_EQ(GetParam().run(t), "") << "order " << int(o) << ", fault: " << m.fault();
    ASSERT_EQ(m.fault(), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, CudaBits, testing::ValuesIn(all_checks()),
                         [](const auto& p) { return p.param.name; });

class CudaTensor : public testing::TestWithParam<check> {};

/// In one order a check: what the bodies do is the same for all, and these are long.
TEST_P(CudaTensor, IsNearAndHasTheSameBitsInAnyCompany) {
  machine m(order(GetParam().name.size() % 3));
  target t = emulated::target_on(emulated_tensor_row, m.stream());
  EXPECT_EQ(GetParam().run(t), "") << "fault: " << m.fault();
  EXPECT_EQ(m.fault(), "");
}

INSTANTIATE_TEST_SUITE_P(Kernels, CudaTensor, testing::ValuesIn(tensor_checks()),
                         [](const auto& p) { return p.param.name; });

TEST(CudaRow, HasEveryKernel) {
  for (const cuda_row& r : {emulated_row, emulated_tensor_row})
    EXPECT_TRUE(r.matmul && r.quantize && r.rows_to_float && r.rms_norm && r.place_heads &&
                r.attend && r.silu_multiply && r.add_tree && r.join_columns && r.draw && r.wipe);
}

}  // namespace
}  // namespace lethe

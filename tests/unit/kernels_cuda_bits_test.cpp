#include <gtest/gtest.h>

#include "tests/cuda/emulated_row.hpp"
#include "tests/cuda/guarded.hpp"
#include "tests/cuda/target.hpp"

namespace lethe {
namespace {

using emulated::machine;
using emulated::order;

std::vector<check> all_checks() {
  std::vector<check> all = row_checks();
  for (const check& c : matmul_checks()) all.push_back(c);
  for (const check& c : attention_checks()) all.push_back(c);
  return all;
}

class CudaBits : public testing::TestWithParam<check> {};

/// Backwards finds what the other orders don't only once, so shuffled turns change with each block.
TEST_P(CudaBits, AreTheReferenceRowsInAnyOrderOfThreads) {
  for (order o : {order::forwards, order::backwards, order::shuffled}) {
    machine m(o);
    target t{&emulated_row,  m.stream(),     emulated::take,
             emulated::give, emulated::copy, emulated::copy};
    ASSERT_EQ(GetParam().run(t), "") << "order " << int(o) << ", fault: " << m.fault();
    ASSERT_EQ(m.fault(), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, CudaBits, testing::ValuesIn(all_checks()),
                         [](const auto& p) { return p.param.name; });

TEST(CudaRow, HasEveryKernel) {
  const cuda_row& r = emulated_row;
  EXPECT_TRUE(r.matmul && r.quantize && r.rows_to_float && r.rms_norm && r.rope && r.kv_store &&
              r.attend && r.silu_multiply && r.add && r.add_bias && r.largest && r.wipe);
}

}  // namespace
}  // namespace lethe

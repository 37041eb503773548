#include <gtest/gtest.h>

#include "runtime/model/load_layout.hpp"
#include "runtime/model/load_memory.hpp"

namespace lethe {
namespace {

raw_tensor tensor(const char* name, dtype type, uint32_t rows, uint32_t cols) {
  raw_tensor t;
  t.name = name;
  t.type = type;
  t.rows = rows;
  t.cols = cols;
  return t;
}

TEST(LoadLayout, PlacesTensorsOneAfterTheOtherOnCacheLines) {
  const raw_tensor all[] = {tensor("embed", dtype::f32, 17, 3), tensor("norm", dtype::bf16, 1, 3),
                            tensor("layers.0.q", dtype::q8_0, 16, 32)};
  auto layout = plan_layout(all, {});
  ASSERT_TRUE(layout);
  uint64_t end = 0;
  for (size_t i = 0; i < 3; ++i) {
    const placed_tensor& t = layout->tensors[i];
    EXPECT_EQ(t.name, all[i].name);
    EXPECT_EQ(t.offset % 64, 0u);
    EXPECT_EQ(t.offset, (end + 63) / 64 * 64);
    end = t.offset + t.bytes;
  }
  EXPECT_EQ(layout->tensors[0].bytes, matrix_bytes(dtype::f32, 17, 3));
  EXPECT_EQ(layout->tensors[1].bytes, 3 * sizeof(float));
  EXPECT_TRUE(layout->tensors[1].is_vector);
  EXPECT_EQ(layout->tensors[2].type, dtype::q8_0);
  EXPECT_EQ(layout->bytes, (end + 63) / 64 * 64);
}

TEST(LoadLayout, ListsWhatTheBlockDoesNotDivide) {
  const raw_tensor all[] = {
      tensor("embed", dtype::f16, 4, 48), tensor("layers.0.q", dtype::f16, 4, 64),
      tensor("layers.0.down", dtype::f16, 4, 40), tensor("head", dtype::f16, 4, 64)};
  auto layout = plan_layout(all, dtype::q4_0);
  ASSERT_TRUE(layout);
  EXPECT_EQ(layout->unconverted, (std::vector<std::string>{"embed", "layers.0.down"}));
  EXPECT_EQ(layout->tensors[0].type, dtype::f16);
  EXPECT_EQ(layout->tensors[1].type, dtype::q4_0);
  EXPECT_EQ(layout->tensors[3].type, dtype::q8_0);
}

TEST(LoadLayout, RefusesToQuantizeTwice) {
  const raw_tensor all[] = {tensor("embed", dtype::f16, 4, 64),
                            tensor("head", dtype::q6_k, 4, 256)};
  auto layout = plan_layout(all, dtype::q8_0);
  ASSERT_FALSE(layout);
  EXPECT_EQ(layout.why().text,
            "quant: tensor head is q6_k already; only float checkpoints are converted");
}

TEST(LoadLayout, RefusesAQuantizedNorm) {
  const raw_tensor all[] = {tensor("norm", dtype::q8_0, 1, 64)};
  EXPECT_FALSE(plan_layout(all, {}));
}

TEST(LoadLayout, RefusesWhatNoProcessCanMap) {
  std::vector<raw_tensor> all(2000, tensor("head", dtype::f32, 1u << 20, 1u << 17));
  auto layout = plan_layout(all, {});
  ASSERT_FALSE(layout);
  EXPECT_EQ(layout.why().text, "tensor head: the weights need more than 70368744177664 bytes");
}

TEST(LoadMemory, ReadsWhatTheHostSays) {
  EXPECT_EQ(available_in("MemTotal:  8 kB\nMemAvailable:       4 kB\nBuffers: 1 kB\n"), 4096u);
  EXPECT_EQ(available_in("MemTotal: 8 kB\n"), std::nullopt);
  EXPECT_EQ(available_in("MemAvailable:"), std::nullopt);
  EXPECT_EQ(available_in("MemAvailable: 99999999999999999999 kB"), std::nullopt);
}

TEST(LoadMemory, RefusesWhatDoesNotFit) {
  constexpr const char* meminfo = "MemAvailable: 4 kB\n";
  EXPECT_TRUE(check_memory(4096, meminfo));
  auto refused = check_memory(4097, meminfo);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.why().text,
            "weights: 4097 bytes are needed, 4096 are available; take a smaller model or --quant");
  EXPECT_TRUE(check_memory(UINT64_MAX, ""));
}

}  // namespace
}  // namespace lethe

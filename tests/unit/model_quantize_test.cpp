#include "runtime/model/quantize.hpp"
#include "tests/places.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/model/dtype_name.hpp"

namespace lethe {
namespace {

constexpr dtype quantized[] = {dtype::q8_0, dtype::q4_0, dtype::q4_1, dtype::q5_0,
                               dtype::q5_1, dtype::q4_k, dtype::q5_k, dtype::q6_k};

/// Where a block keeps its halves: a scale, and in some a minimum.
std::vector<size_t> halves_of(dtype t) {
  switch (t) {
    case dtype::q4_1:
    case dtype::q5_1:
    case dtype::q4_k:
    case dtype::q5_k:
      return {0, 2};
    case dtype::q6_k:
      return {208};
    default:
      return {0};
  }
}

/// Any bits but a finite scale.
std::vector<std::byte> random_blocks(dtype t, size_t blocks, std::mt19937& random) {
  std::vector<std::byte> bytes(blocks * block_bytes(t));
  for (auto& b : bytes) b = std::byte(random());
  for (size_t i = 0; i < blocks; ++i)
    for (size_t at : halves_of(t)) {
      auto half = uint16_t(random());
      if ((half & 0x7c00) == 0x7c00) half &= 0xbfff;
      std::memcpy(bytes.data() + i * block_bytes(t) + at, &half, 2);
    }
  return bytes;
}

std::vector<float> normal_numbers(size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 0.02f);
  std::vector<float> x(n);
  for (auto& v : x) v = normal(random);
  return x;
}

std::vector<float> there_and_back(dtype t, const std::vector<float>& x) {
  std::vector<std::byte> bytes(x.size() / block_elements(t) * block_bytes(t));
  quantize_row(t, x.data(), x.size(), bytes.data());
  std::vector<float> y(x.size());
  dequantize_row(t, bytes.data(), y.data(), y.size());
  return y;
}

/// Root of mean squares of the difference, as a part of x's own.
double relative_error(const std::vector<float>& x, const std::vector<float>& y) {
  double off = 0, all = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    off += (double(x[i]) - y[i]) * (double(x[i]) - y[i]);
    all += double(x[i]) * x[i];
  }
  return std::sqrt(off / all);
}

uint32_t bits(float f) { return std::bit_cast<uint32_t>(f); }

TEST(Half, EveryHalfSurvivesTheWayThroughFloat) {
  for (uint32_t h = 0; h <= 0xffff; ++h) {
    float f = f32_of_f16(uint16_t(h));
    if (std::isnan(f))
      EXPECT_TRUE(std::isnan(f32_of_f16(f16_of(f))));
    else
      EXPECT_EQ(f16_of(f), h);
  }
}

TEST(Half, RoundsToNearestAndTiesToEven) {
  for (uint32_t h = 0; h < 0x7bff; ++h) {
    float low = f32_of_f16(uint16_t(h)), high = f32_of_f16(uint16_t(h + 1));
    float middle = (low + high) / 2;  // exact: a half has few bits
    EXPECT_EQ(f16_of(middle), h % 2 ? h + 1 : h);
    EXPECT_EQ(f16_of(std::nextafter(middle, low)), h);
    EXPECT_EQ(f16_of(std::nextafter(middle, high)), h + 1);
    EXPECT_EQ(f16_of(-middle), 0x8000 | (h % 2 ? h + 1 : h));
  }
  EXPECT_EQ(f16_of(65519.996f), 0x7bff);
  EXPECT_EQ(f16_of(65520.0f), 0x7c00);
  EXPECT_EQ(f16_of(INFINITY), 0x7c00);
  EXPECT_EQ(f16_of(0x1p-25f), 0);
  EXPECT_EQ(f16_of(-0.0f), 0x8000);
}

TEST(BFloat, RoundsToNearestAndTiesToEven) {
  for (uint32_t h : {0u, 1u, 2u, 0x3f80u, 0x3f81u, 0x7f7eu}) {
    float middle = std::bit_cast<float>(h << 16 | 0x8000);
    EXPECT_EQ(bf16_of(middle), h % 2 ? h + 1 : h);
    EXPECT_EQ(bf16_of(std::bit_cast<float>(h << 16 | 0x7fff)), h);
    EXPECT_EQ(bf16_of(std::bit_cast<float>(h << 16 | 0x8001)), h + 1);
  }
  EXPECT_EQ(bf16_of(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_TRUE(std::isnan(f32_of_bf16(bf16_of(std::bit_cast<float>(0x7f800001)))));
}

/// tests/data/model_quantize_blocks.txt: per line a type, a block and its floats, both in hex.
TEST(Dequantize, GivesTheRecordedValues) {
  std::ifstream in(std::string(places::test_data) + "/model_quantize_blocks.txt");
  std::string line;
  size_t lines = 0;
  while (std::getline(in, line)) {
    std::istringstream words(line);
    std::string name, block, hex;
    words >> name >> block;
    auto t = dtype_named(name);
    ASSERT_TRUE(t) << name;
    ASSERT_EQ(block.size(), 2 * block_bytes(*t));
    std::vector<std::byte> bytes;
    for (size_t i = 0; i < block.size(); i += 2)
      bytes.push_back(std::byte(std::stoul(block.substr(i, 2), nullptr, 16)));
    std::vector<float> got(block_elements(*t));
    dequantize_row(*t, bytes.data(), got.data(), got.size());
    for (float g : got) {
      ASSERT_TRUE(words >> hex) << name;
      EXPECT_EQ(bits(g), std::stoul(hex, nullptr, 16)) << name;
    }
    ++lines;
  }
  EXPECT_EQ(lines, std::size(quantized));
}

TEST(Quantize, StaysWithinEachTypesError) {
  // What 8, 6, 5 and 4 bits leave of normally distributed numbers, with little room.
  const std::pair<dtype, double> most[] = {
      {dtype::f16, 0.0003},  {dtype::bf16, 0.0022}, {dtype::q8_0, 0.0062}, {dtype::q6_k, 0.0195},
      {dtype::q5_k, 0.0375}, {dtype::q5_1, 0.042},  {dtype::q5_0, 0.046},  {dtype::q4_k, 0.077},
      {dtype::q4_1, 0.085},  {dtype::q4_0, 0.095}};
  auto x = normal_numbers(256 * 64, 1);
  for (auto [t, limit] : most) {
    double off = relative_error(x, there_and_back(t, x));
    EXPECT_LT(off, limit) << name_of(t);
    EXPECT_GT(off, limit / 2) << name_of(t);
  }
}

TEST(Quantize, TakesExtremesWithoutHarm) {
  std::vector<float> x(256, 0.0f);
  for (auto t : quantized)
    for (float y : there_and_back(t, x)) EXPECT_EQ(y, 0.0f) << name_of(t);
  for (float odd : {INFINITY, -INFINITY, NAN, 1e38f, 1e-42f, -1.0f}) {
    std::fill(x.begin(), x.end(), odd);
    x[3] = 1;
    for (auto t : quantized) there_and_back(t, x);
  }
  for (float same : {1.0f, -1.0f}) {
    std::fill(x.begin(), x.end(), same);
    for (auto t : quantized)
      for (float y : there_and_back(t, x)) EXPECT_NEAR(y, same, 0.04f) << name_of(t);
  }
}

/// The shared library of another implementation of these formats, where LETHE_GGML names one.
class Ggml : public testing::TestWithParam<dtype> {
 protected:
  void SetUp() override {
    const char* path = std::getenv("LETHE_GGML");
    const char* ci = std::getenv("CI");
    if (!path && ci && std::string(ci) == "true") FAIL() << "CI needs LETHE_GGML";
    if (!path) GTEST_SKIP() << "set LETHE_GGML to a libggml-base.so to compare with it";
    library_ = dlopen(path, RTLD_NOW);
    ASSERT_NE(library_, nullptr) << dlerror();
  }
  void TearDown() override {
    if (library_) dlclose(library_);
  }
  template <class Function>
  Function* find(const std::string& before, const std::string& after) {
    std::string name = name_of(GetParam());
    if (name.ends_with("_k")) name.back() = 'K';
    auto symbol = reinterpret_cast<Function*>(dlsym(library_, (before + name + after).c_str()));
    EXPECT_NE(symbol, nullptr) << before << name << after;
    return symbol;
  }

  void* library_ = nullptr;
};

TEST_P(Ggml, DequantizesRandomBlocksBitByBitTheSame) {
  auto theirs = find<void(const void*, float*, int64_t)>("dequantize_row_", "");
  ASSERT_NE(theirs, nullptr);
  dtype t = GetParam();
  std::mt19937 random(7);
  constexpr size_t blocks = 2000;
  auto bytes = random_blocks(t, blocks, random);
  std::vector<float> ours(blocks * block_elements(t)), other(ours.size());
  dequantize_row(t, bytes.data(), ours.data(), ours.size());
  theirs(bytes.data(), other.data(), int64_t(other.size()));
  for (size_t i = 0; i < ours.size(); ++i) ASSERT_EQ(bits(ours[i]), bits(other[i])) << i;
}

TEST_P(Ggml, QuantizesNoWorse) {
  auto theirs = find<void(const float*, void*, int64_t)>("quantize_row_", "_ref");
  ASSERT_NE(theirs, nullptr);
  dtype t = GetParam();
  auto x = normal_numbers(256 * 64, 2);
  std::vector<std::byte> bytes(x.size() / block_elements(t) * block_bytes(t));
  theirs(x.data(), bytes.data(), int64_t(x.size()));
  std::vector<float> y(x.size());
  dequantize_row(t, bytes.data(), y.data(), y.size());
  double off = relative_error(x, there_and_back(t, x));
  EXPECT_LE(off, relative_error(x, y) * 1.01) << name_of(t);
}

INSTANTIATE_TEST_SUITE_P(AllTypes, Ggml, testing::ValuesIn(quantized),
                         [](const auto& p) { return std::string(name_of(p.param)); });

}  // namespace
}  // namespace lethe

#include "kernels/cpu/lanes_reference.hpp"
//
#include "kernels/cpu/lanes_math.inl"
//
#include <gtest/gtest.h>

#include <cmath>

namespace lethe {
namespace {

constexpr float least = -126;

float two_to_the(float x) { return first_of(two_to(set1(x))); }

/// |a - 2^x| in units of the last place of 2^x.
double units_off(float x) {
  double exact = std::exp2(double(x));
  int exponent = 0;
  std::frexp(exact, &exponent);
  return std::abs(two_to_the(x) - exact) / std::ldexp(1.0, exponent - 24);
}

TEST(TwoTo, IsWithinTwoUnitsOfTheLastPlace) {
  double worst = 0;
  auto look = [&](float from, float to, uint32_t step) {
    for (uint32_t bits = bits_of(from); bits < bits_of(to); bits += step) {
      worst = std::max(worst, units_off(float_from_bits(bits)));
    }
  };
  look(-0.0f, least, 2003);
  look(-0.499f, -0.501f, 1);  // where rounding to whole numbers turns
  look(-1.499f, -1.501f, 1);
  EXPECT_LE(worst, 2.0);
  EXPECT_GT(worst, 0.4);  // it is not compared with itself
}

TEST(TwoTo, IsExactAtWholeNumbersAndEndsAtTheLeastNormal) {
  for (float x = 0; x >= least; x--) EXPECT_EQ(two_to_the(x), std::ldexp(1.0f, int(x)));
  EXPECT_EQ(two_to_the(-0.0f), 1.0f);
  EXPECT_EQ(two_to_the(-INFINITY), 0.0f);
  EXPECT_EQ(two_to_the(-1e30f), 0.0f);
  EXPECT_EQ(two_to_the(std::nextafter(least, -INFINITY)), 0.0f);
  EXPECT_GE(two_to_the(std::nextafter(least, 0.0f)), 0x1p-126f);
  EXPECT_TRUE(std::isnan(two_to_the(NAN)));
}

}  // namespace
}  // namespace lethe

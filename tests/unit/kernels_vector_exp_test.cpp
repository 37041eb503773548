#include "kernels/cpu/lanes_reference.hpp"
//
#include "kernels/cpu/lanes_math.inl"
//
#include <gtest/gtest.h>

#include <cmath>

namespace lethe {
namespace {

constexpr float least_normal = 0x1p-126f;

float exp_of(float x) { return first_of(exp_of_negative(set1(x))); }

/// |a - e^x| in units of the last place of e^x.
double units_off(float x) {
  double exact = std::exp(double(x));
  int exponent = 0;
  std::frexp(exact, &exponent);
  return std::abs(exp_of(x) - exact) / std::ldexp(1.0, exponent - 24);
}

TEST(Exp, IsWithinOneUnitOfTheLastPlace) {
  double worst = 0;
  // Every 2003rd float from -87.33654 up to -0.
  for (uint32_t bits = bits_of(-0.0f); bits < bits_of(-0x1.5d589ep+6f); bits += 2003) {
    worst = std::max(worst, units_off(float_from_bits(bits)));
  }
  EXPECT_LE(worst, 1.0);
  EXPECT_GT(worst, 0.4);  // it is not compared with itself
}

TEST(Exp, IsExactAtZeroAndEndsAtTheLeastNormal) {
  EXPECT_EQ(exp_of(0.0f), 1.0f);
  EXPECT_EQ(exp_of(-0.0f), 1.0f);
  EXPECT_EQ(exp_of(-INFINITY), 0.0f);
  EXPECT_EQ(exp_of(-1e30f), 0.0f);
  EXPECT_EQ(exp_of(-87.34f), 0.0f);
  EXPECT_EQ(exp_of(std::nextafter(-0x1.5d589ep+6f, -INFINITY)), 0.0f);
  EXPECT_GE(exp_of(-0x1.5d589ep+6f), least_normal);
  EXPECT_TRUE(std::isnan(exp_of(NAN)));
}

}  // namespace
}  // namespace lethe

// How many nodes may see one body.
#include "runtime/client/exposure_budget.hpp"
#include "tests/unit/log_samples.hpp"

namespace lethe {
namespace {

using namespace test;

TEST(ClientExposure, CountsEveryDrawForABody) {
  exposure_budget budget;
  const auto body = budget.hash_of(as_bytes("a prompt"));
  for (uint32_t n = 1; n <= 3; ++n) {
    auto draw = budget.draw(body, 2, 100);
    ASSERT_TRUE(draw) << draw.why().text;
    EXPECT_EQ(*draw, n);
  }
  EXPECT_TRUE(refused(budget.draw(body, 2, 130), "exposure: nodes were drawn 3 times"));
  EXPECT_NE(budget.draw(body, 2, 130).why().text.find("in 570 s"), std::string::npos);
  EXPECT_TRUE(budget.draw(budget.hash_of(as_bytes("another")), 2, 130));
}

TEST(ClientExposure, WithoutRedrawsThereIsOne) {
  exposure_budget budget;
  const auto body = budget.hash_of(as_bytes("a prompt"));
  EXPECT_TRUE(budget.draw(body, 0, 100));
  EXPECT_FALSE(budget.draw(body, 0, 100));
}

TEST(ClientExposure, ForgetsTenMinutesAfterTheLastDraw) {
  exposure_budget budget;
  const auto body = budget.hash_of(as_bytes("a prompt"));
  for (uint64_t t : {100, 200, 300}) ASSERT_TRUE(budget.draw(body, 2, t));
  EXPECT_FALSE(budget.draw(body, 2, 899));
  EXPECT_EQ(budget.remembered(899), 1u);
  EXPECT_TRUE(budget.draw(body, 2, 900));
  EXPECT_EQ(budget.remembered(1499), 1u);
  EXPECT_EQ(budget.remembered(1500), 0u);
}

TEST(ClientExposure, ADrawThatNobodyHeardOfDoesNotCount) {
  exposure_budget budget;
  const auto body = budget.hash_of(as_bytes("a prompt"));
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(budget.draw(body, 0, 100));
    budget.take_back(body);
  }
  EXPECT_EQ(budget.remembered(100), 0u);
}

TEST(ClientExposure, HoldsItsBound) {
  exposure_budget budget(3);
  auto body = [&](char c) { return budget.hash_of(as_bytes({&c, 1})); };
  for (char c : {'a', 'b', 'c'}) ASSERT_TRUE(budget.draw(body(c), 2, 100));
  EXPECT_TRUE(refused(budget.draw(body('d'), 2, 100), "exposure: 3 different bodies"));
  EXPECT_TRUE(budget.draw(body('c'), 2, 100));
  EXPECT_TRUE(budget.draw(body('d'), 2, 700));
}

TEST(ClientExposure, HashesSayNothingWithoutTheKey) {
  exposure_budget one, other;
  EXPECT_EQ(one.hash_of(as_bytes("x")), one.hash_of(as_bytes("x")));
  EXPECT_NE(one.hash_of(as_bytes("x")), one.hash_of(as_bytes("y")));
  EXPECT_NE(one.hash_of(as_bytes("x")), other.hash_of(as_bytes("x")));
}

}  // namespace
}  // namespace lethe

// Two users as gateway and scheduler see them, byte by byte.
#include "runtime/audit/router_view.hpp"

#include <random>

#include "tests/unit/audit_stands.hpp"

namespace lethe::audit {
namespace {

TEST(AuditRouterView, OfTwoUsersIsEqualButForFreshRandomness) {
  EXPECT_TRUE(stands(measure_router_view({.requests = 32})));
}

std::vector<router_view> random_views(size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<router_view> out;
  for (size_t i = 0; i < n; ++i) {
    auto& v = out.emplace_back(router_view{.fixed = i % 2 ? "small" : "large one", .fresh = {}});
    for (int b = 0; b < 40; ++b) v.fresh += char(random());
  }
  return out;
}

TEST(AuditRouterView, TellsFormsAndBitsApart) {
  const auto a = random_views(200, 1), b = random_views(200, 2);
  EXPECT_EQ(difference(a, b), "");
  auto tagged = b;
  for (auto& v : tagged) v.fresh[17] = char(v.fresh[17] | 8);
  EXPECT_EQ(difference(a, tagged).substr(0, 27), "bit 3 of byte 17 of what is");
  auto other = b;
  other.back().fixed = "smalL";
  EXPECT_NE(difference(a, other).find("5 bytes, other at byte 4"), std::string::npos)
      << difference(a, other);
  auto shorter = b;
  shorter.back().fresh.pop_back();
  EXPECT_EQ(difference(a, shorter), "fresh parts of another length");
  EXPECT_NE(difference(a, std::span(b).first(1)), "");  // only one of the forms
}

TEST(AuditRouterView, TakesOnlyWhatClientsSend) {
  EXPECT_FALSE(view_of({"", ""}));
  EXPECT_FALSE(view_of({"", "no message"}));
}

}  // namespace
}  // namespace lethe::audit

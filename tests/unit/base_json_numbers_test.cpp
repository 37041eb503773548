#include "runtime/base/json_numbers.hpp"

#include <gtest/gtest.h>

namespace lethe {
namespace {

TEST(JsonNumbers, GivesWideIntegersAFraction) {
  EXPECT_EQ(widen_integers(R"({"a": 1000000000000000019884624838656, "b":-9223372036854775809})"),
            R"({"a": 1000000000000000019884624838656.0, "b":-9223372036854775809.0})");
  EXPECT_EQ(widen_integers("1234567890123456789"), "1234567890123456789.0");
}

TEST(JsonNumbers, LeavesAllElseAsItIs) {
  for (const char* same :
       {"", "{}", "123456789012345678", "0.1234567890123456789012", "12345678901234567890e3",
        "12345678901234567890.5", "1e-1234567890123456789012", R"("12345678901234567890")",
        R"("\"12345678901234567890")", R"("\\")", "\"open 12345678901234567890", "\"\\",
        R"(["\u0031",1.5,-0,true,null])"})
    EXPECT_EQ(widen_integers(same), same);
}

}  // namespace
}  // namespace lethe

#include <gtest/gtest.h>

#include <string>

#include "runtime/base/varint.hpp"

namespace lethe {
namespace {

std::string written(uint64_t value) {
  std::string out;
  append_varint(out, value);
  return out;
}

TEST(Varint, ReadsTheExamplesOfRfc9000) {
  struct {
    std::string_view bytes;
    uint64_t value;
  } const examples[] = {
      {"\xc2\x19\x7c\x5e\xff\x14\xe8\x8c", 151288809941952652},
      {"\x9d\x7f\x3e\x7d", 494878333},
      {"\x7b\xbd", 15293},
      {"\x25", 37},
      {"\x40\x25", 37},  // longer than needed
  };
  for (const auto& e : examples) {
    auto in = e.bytes;
    EXPECT_EQ(take_varint(in), e.value);
    EXPECT_TRUE(in.empty());
  }
}

TEST(Varint, WritesTheShortestForm) {
  const uint64_t edges[] = {
      0, 1, 63, 64, 16383, 16384, 1073741823, 1073741824, varint_max - 1, varint_max};
  const size_t bytes[] = {1, 1, 1, 2, 2, 4, 4, 8, 8, 8};
  for (size_t i = 0; i < std::size(edges); ++i) {
    const auto out = written(edges[i]);
    EXPECT_EQ(out.size(), bytes[i]) << edges[i];
    EXPECT_EQ(varint_bytes(edges[i]), bytes[i]);
    std::string_view in = out;
    EXPECT_EQ(take_varint(in), edges[i]);
    EXPECT_TRUE(in.empty());
  }
  EXPECT_EQ(written(494878333), "\x9d\x7f\x3e\x7d");
}

TEST(Varint, TakesNothingOfANumberThatIsCut) {
  for (uint64_t value : {uint64_t{64}, uint64_t{16384}, varint_max}) {
    const auto whole = written(value);
    for (size_t cut = 0; cut < whole.size(); ++cut) {
      auto in = std::string_view(whole).substr(0, cut);
      EXPECT_FALSE(take_varint(in));
      EXPECT_EQ(in.size(), cut);
    }
  }
}

TEST(Varint, LeavesWhatFollows) {
  std::string_view in("\x40\x25rest", 6);
  EXPECT_EQ(take_varint(in), 37u);
  EXPECT_EQ(in, "rest");
}

TEST(VarintDeath, ANumberOf63BitsIsOurMistake) {
  EXPECT_DEATH(written(varint_max + 1), "varint.hpp");
}

}  // namespace
}  // namespace lethe

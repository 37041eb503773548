// [shape] of a cluster's file: its defaults, its limits, and where it may stand.
#include "tests/unit/config_read.hpp"

namespace lethe {
namespace {

using namespace testing;

std::string file(const std::string& shape) {
  return model_line +
         "[gateway]\nlisten = \"127.0.0.1:0\"\nfolder = \"g\"\nissuer = \"http://127.0.0.1:1\"\n"
         "issuer_secret = \"s\"\n" +
         shape;
}

TEST(ShapeTable, TicksUnlessItSaysOtherwise) {
  for (const char* text : {"", "[shape]\n"}) {
    auto c = check(file(text));
    EXPECT_EQ(problems(c), "");
    auto s = c.config.get().getShape();
    EXPECT_EQ(s.getMode(), schema::ShapeMode::SIZE_TICK);
    EXPECT_EQ(s.getChunk(), 2048u);
    EXPECT_EQ(s.getTickMs(), 50u);
  }
  auto c = check(file("[shape]\nmode = \"size\"\nchunk = \"1 KiB\"\n"));
  EXPECT_EQ(problems(c), "");
  EXPECT_EQ(c.config.get().getShape().getMode(), schema::ShapeMode::SIZE);
  EXPECT_EQ(c.config.get().getShape().getChunk(), 1024u);
}

TEST(ShapeTable, HasLimits) {
  for (const char* good : {"chunk = 256", "chunk = 8192", "tick_ms = 1", "tick_ms = 1000",
                           "mode = \"size\"", "mode = \"size_tick\""})
    EXPECT_EQ(problems(check(file("[shape]\n" + std::string(good) + "\n"))), "") << good;
  refuses(file("[shape]\nchunk = 255\n"), {"c.toml:9: shape.chunk: is out of range; 256 to 8192"});
  refuses(file("[shape]\nchunk = 8193\n"), {"shape.chunk: is out of range"});
  refuses(file("[shape]\ntick_ms = 0\n"), {"shape.tick_ms: is out of range; 1 to 1000"});
  refuses(file("[shape]\ntick_ms = 1001\n"), {"shape.tick_ms: is out of range"});
  refuses(file("[shape]\nmode = \"tick\"\n"), {"shape.mode"});
}

TEST(ShapeTable, StandsBesideAGateway) {
  refuses(model_line + "[shape]\n",
          {"shape: shapes the answers of a [gateway], and there is none"});
}

}  // namespace
}  // namespace lethe

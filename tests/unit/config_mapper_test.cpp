// TOML against the schema: what is taken, what is refused, and with which line.
#include "tests/unit/config_read.hpp"

#include "runtime/base/similar.hpp"
#include "runtime/config/quantity.hpp"
#include "runtime/config/reference.hpp"

namespace lethe {
namespace {

using testing::check;
using testing::problems;
using testing::refuses;

cluster_config parse(const std::string& text) { return cluster_config::parse(text, "c.toml"); }

TEST(ConfigMapper, TakesDefaultsFromTheSchema) {
  auto c = parse("[model]\npath = \"m\"\n");
  ASSERT_TRUE(c.problems().empty()) << c.problems()[0];
  EXPECT_EQ(c.get().getProfile(), schema::Profile::STRICT);
  EXPECT_EQ(c.get().getBatching().getPageTokens(), 0u);
  EXPECT_EQ(c.get().getHealth().getLostAfterMs(), 1000u);
}

TEST(ConfigMapper, FillsEveryKindOfField) {
  auto c = parse(R"(profile = "lab"
[model]
path = "m"
[engines]
count = 3
placement = "exact"
ranks = ["a", "b:1"]
[batching]
kv_memory = "1.5 GiB"
[[hosts]]
name = "a"
[[hosts]]
name = "b"
port = 7000
memory = 4096
)");
  ASSERT_TRUE(c.problems().empty()) << c.problems()[0];
  EXPECT_EQ(c.get().getProfile(), schema::Profile::LAB);
  EXPECT_EQ(c.get().getEngines().getCount(), 3);
  EXPECT_EQ(c.get().getEngines().getPlacement(), schema::Placement::EXACT);
  EXPECT_STREQ(c.get().getEngines().getRanks()[1].cStr(), "b:1");
  EXPECT_EQ(c.get().getBatching().getKvMemory(), 3ull << 29);
  ASSERT_EQ(c.get().getHosts().size(), 2u);
  EXPECT_EQ(c.get().getHosts()[1].getPort(), 7000);
  EXPECT_EQ(c.get().getHosts()[1].getMemory(), 4096u);
}

TEST(ConfigMapper, FindsEveryMistakeAtOnceWithLineAndRemedy) {
  auto c = parse(R"(profil = "lab"
[model]
pth = "x"
[engines]
count = "two"
placement = "pakced"
tensor = -1
[batching]
page_tokens = 65
kv_memory = "12 apples"
[[hosts]]
[health]
heartbeat_ms = true
)");
  const std::vector<std::string> expected{
      "c.toml:1: profil: there is no key \"profil\"; did you mean profile?",
      "c.toml:2: model.path is missing: ",
      "c.toml:3: model.pth: there is no key \"pth\"; did you mean path?",
      "c.toml:5: engines.count: must be a whole number, 1 to 256",
      "c.toml:6: engines.placement: there is no choice \"pakced\"; did you mean packed?",
      "c.toml:7: engines.tensor: is out of range; 1 to 64",
      "c.toml:9: batching.page_tokens: is out of range; 0 to 64",
      "c.toml:10: batching.kv_memory: must be a size, as \"512 MiB\"",
      "c.toml:11: hosts[0].name is missing: ",
      "c.toml:13: health.heartbeat_ms: must be a whole number"};
  ASSERT_EQ(c.problems().size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(c.problems()[i].rfind(expected[i], 0), 0u) << c.problems()[i];
}

TEST(ConfigMapper, RefusesValuesOfAnotherShape) {
  refuses("model = 3\n", {"c.toml:1: model: must be a table: [model]"});
  refuses("hosts = [1]\n", {"hosts[0]: must be a table"});
  refuses("[hosts]\n", {"hosts: must be tables: [[hosts]]"});
  refuses("[engines]\nranks = \"a\"\n", {"engines.ranks: must be a list"});
  refuses("[engines]\nranks = [1]\n", {"engines.ranks[0]: must be a text in quotes"});
  refuses("name = 3\n", {"name: must be a text in quotes"});
}

TEST(ConfigMapper, BoundsHoldAtAndAround) {
  auto problems = [](const std::string& line) {
    return parse("[model]\npath=\"m\"\n[batching]\n" + line).problems().size();
  };
  EXPECT_EQ(problems("running=0"), 1u);
  EXPECT_EQ(problems("running=1"), 0u);
  EXPECT_EQ(problems("running=4096"), 0u);
  EXPECT_EQ(problems("running=4097"), 1u);
  EXPECT_EQ(problems("page_tokens=0"), 0u);
  EXPECT_EQ(problems("page_tokens=64"), 0u);
  EXPECT_EQ(problems("page_tokens=65"), 1u);
  EXPECT_EQ(problems("page_tokens=9223372036854775807"), 1u);
}

TEST(ConfigMapper, ListsHaveABound) {
  std::string hosts = "[model]\npath=\"m\"\n";
  for (int i = 0; i < 256; ++i) hosts += "[[hosts]]\nname=\"h" + std::to_string(i) + "\"\n";
  EXPECT_TRUE(parse(hosts).problems().empty());
  EXPECT_NE(parse(hosts + "[[hosts]]\nname=\"x\"\n").problems()[0].find("256 at most"),
            std::string::npos);
}

TEST(ConfigMapper, SaysWhereTheTextIsNoToml) {
  refuses("[model]\npath = \n", {"c.toml:2: not TOML"});
  refuses("a = 1\na = 2\n", {"c.toml:2: not TOML"});
}

TEST(ConfigMapper, AFileThatIsNotThereIsOneProblem) {
  auto c = cluster_config::read("/nowhere/c.toml");
  ASSERT_EQ(c.problems().size(), 1u);
  EXPECT_NE(c.problems()[0].find("/nowhere/c.toml"), std::string::npos);
}

TEST(ConfigMapper, ItsReferenceIsAFileThatItTakes) {
  auto c = parse(config_reference());
  for (const auto& p : c.problems()) ADD_FAILURE() << p;
  // Written out, every default is still the default.
  EXPECT_EQ(c.get().getBatching().getStepTokens(), 512u);
}

TEST(Quantity, ReadsSizesAsPeopleWriteThem) {
  EXPECT_EQ(parse_bytes("0"), 0u);
  EXPECT_EQ(parse_bytes("4096"), 4096u);
  EXPECT_EQ(parse_bytes("512 MiB"), 512u << 20);
  EXPECT_EQ(parse_bytes("1.5GiB"), 3ull << 29);
  EXPECT_EQ(parse_bytes("2 GB"), 2'000'000'000u);
  for (const char* none : {"", "MiB", "-1", "1 apple", "nan", "1e400", "9999999999 TiB", "1 MiB x"})
    EXPECT_FALSE(parse_bytes(none)) << none;
}

TEST(Quantity, WritesThemBack) {
  EXPECT_EQ(bytes_text(1023), "1023 bytes");
  EXPECT_EQ(bytes_text(1024), "1.0 KiB");
  EXPECT_EQ(bytes_text(3ull << 29), "1.5 GiB");
}

TEST(Similar, FindsTheWordThatWasMeantOrNone) {
  EXPECT_EQ(most_similar("tensr", {"count", "tensor"}), "tensor");
  EXPECT_EQ(most_similar("nmae", {"name", "model"}), std::nullopt);
  EXPECT_EQ(most_similar("zebra", {"count", "tensor"}), std::nullopt);
}

}  // namespace
}  // namespace lethe

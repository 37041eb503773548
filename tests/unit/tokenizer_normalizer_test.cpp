#include <gtest/gtest.h>

#include "runtime/tokenizer/component_json.hpp"

namespace lethe {
namespace {

std::string normalized(std::string_view json, std::string_view text) {
  simdjson::dom::parser parser;
  auto steps = json::read_normalizers(parser.parse(simdjson::padded_string(json)).value());
  EXPECT_TRUE(steps) << (steps ? "" : steps.why().text);
  if (!steps) return "";
  auto* memory = std::pmr::new_delete_resource();
  std::pmr::string out(text, memory);
  match_session session(text.size(), memory);
  EXPECT_TRUE(normalizers::apply(*steps, out, session));
  return std::string(out);
}

std::string refusal(std::string_view json) {
  simdjson::dom::parser parser;
  auto steps = json::read_normalizers(parser.parse(simdjson::padded_string(json)).value());
  return steps ? "" : steps.why().text;
}

TEST(Normalizer, AppliesUnicodeForms) {
  EXPECT_EQ(normalized(R"({"type":"NFC"})", "e\u0301"), "\u00E9");
  EXPECT_EQ(normalized(R"({"type":"NFD"})", "\u00E9"), "e\u0301");
  EXPECT_EQ(normalized(R"({"type":"NFKC"})", "\uFB01"), "fi");
  EXPECT_EQ(normalized(R"({"type":"NFKD"})", "\u1E9B"), "s\u0307");
}

TEST(Normalizer, LowersAndStripsAccents) {
  EXPECT_EQ(normalized(R"({"type":"Lowercase"})", "HÉLLO"), "héllo");
  EXPECT_EQ(normalized(R"({"type":"Sequence","normalizers":[{"type":"NFD"},
                          {"type":"StripAccents"}]})",
                       "Café"),
            "Cafe");
}

TEST(Normalizer, StripsTheSidesThatAreNamed) {
  EXPECT_EQ(normalized(R"({"type":"Strip"})", " \u3000a b\n "), "a b");
  EXPECT_EQ(normalized(R"({"type":"Strip","strip_left":false})", " a "), " a");
  EXPECT_EQ(normalized(R"({"type":"Strip","strip_right":false})", " a "), "a ");
  EXPECT_EQ(normalized(R"({"type":"Strip"})", "  "), "");
  EXPECT_EQ(normalized(R"({"type":"Strip","strip_left":false,"strip_right":false})", " "), " ");
}

TEST(Normalizer, PrependsToAllButEmptyTexts) {
  EXPECT_EQ(normalized(R"({"type":"Prepend","prepend":"▁"})", "a"), "▁a");
  EXPECT_EQ(normalized(R"({"type":"Prepend","prepend":"▁"})", ""), "");
}

TEST(Normalizer, ReplacesTextsAndPatterns) {
  EXPECT_EQ(normalized(R"({"type":"Replace","pattern":{"String":" "},"content":"▁"})", " a  b"),
            "▁a▁▁b");
  EXPECT_EQ(
      normalized(R"({"type":"Replace","pattern":{"Regex":" {2,}"},"content":"$0"})", "a   b c"),
      "a$0b c");
  EXPECT_EQ(normalized(R"({"type":"Replace","pattern":{"Regex":"x*"},"content":"-"})", "éxa"),
            "-é--a-");
}

TEST(Normalizer, AppliesSentencePiecesNmtRules) {
  EXPECT_EQ(normalized(R"({"type":"Nmt"})", "a\x01\x7F\u200Bb\tc\u00A0"), "a b c\u00A0");
}

TEST(Normalizer, TreatsTextAsBertDoes) {
  constexpr auto bert = R"({"type":"BertNormalizer","clean_text":true,"lowercase":true,
      "handle_chinese_chars":true,"strip_accents":null})";
  EXPECT_EQ(normalized(bert, "Caf\u00E9\u0001\t\u4F60\u597D"), "cafe  \u4F60  \u597D ");
}

TEST(Normalizer, SpellsBytesAsCharacters) {
  EXPECT_EQ(normalized(R"({"type":"ByteLevel"})", " é\n"), "ĠÃ©Ċ");
}

TEST(Normalizer, RefusesByNameWhatItDoesNotKnow) {
  EXPECT_EQ(refusal(R"({"type":"Magic"})"), "normalizer Magic: not supported");
  EXPECT_EQ(refusal(R"({"type":"Prepend"})"), "normalizer Prepend: \"prepend\" is missing");
  EXPECT_EQ(refusal(R"({"type":"Replace","pattern":{"String":""},"content":""})"),
            "normalizer Replace: \"pattern\" is empty");
  std::string deep = R"({"type":"NFC"})";
  for (int i = 0; i < 9; i++) deep = R"({"type":"Sequence","normalizers":[)" + deep + "]}";
  EXPECT_EQ(refusal(deep), "normalizer: nested deeper than 8");
}

// A double array for these replacements, laid out as Darts-clone reads it: one block of 256
// units a node, so that no two nodes share a unit.
class charsmap_builder {
 public:
  void add(std::string_view from, std::string_view to) {
    uint32_t node = 0;
    for (char c : from) node = child(node, uint8_t(c));
    ends_[node] = uint32_t(pool_.size());
    pool_ += to;
    pool_ += '\0';
  }
  std::string bytes() {
    std::vector<uint32_t> units((nodes_.size() + 1) * 256);
    for (uint32_t n = 0; n < nodes_.size(); n++) place(n, units);
    std::string out;
    auto put = [&out](uint32_t v) { out.append(reinterpret_cast<char*>(&v), 4); };
    put(uint32_t(units.size() * 4));
    for (uint32_t u : units) put(u);
    return out + pool_;
  }

 private:
  struct node {
    uint32_t parent;
    uint8_t label;
  };
  uint32_t child(uint32_t parent, uint8_t label) {
    for (uint32_t i = 1; i < nodes_.size(); i++)
      if (nodes_[i].parent == parent && nodes_[i].label == label) return i;
    nodes_.push_back({parent, label});
    return uint32_t(nodes_.size() - 1);
  }
  static uint32_t block(uint32_t node) { return (node + 1) * 256; }
  // A node's own unit stands in its parent's block; its offset leads to its own block.
  void place(uint32_t n, std::vector<uint32_t>& units) {
    uint32_t at = n ? block(nodes_[n].parent) ^ nodes_[n].label : 0;
    uint32_t offset = at ^ block(n);
    units[at] = offset << 10 | nodes_[n].label;
    if (!ends_.contains(n)) return;
    units[at] |= 1u << 8;
    units[block(n)] = 1u << 31 | ends_[n];
  }
  std::vector<node> nodes_ = {{0, 0}};
  std::map<uint32_t, uint32_t> ends_;
  std::string pool_;
};

std::string base64(std::string_view bytes) {
  constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t v = 0;
    for (size_t k = 0; k < 3; k++) v = v << 8 | (i + k < bytes.size() ? uint8_t(bytes[i + k]) : 0);
    for (size_t k = 0; k < 4; k++)
      out += i + k <= bytes.size() ? digits[v >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

TEST(Charsmap, ReplacesTheLongestMatch) {
  charsmap_builder table;
  table.add("ﬁ", "fi");
  table.add("e\u0301", "é");
  table.add("\u3000", " ");
  table.add("\u200B", "");
  table.add("A", "a");
  table.add("AB", "ß");
  std::string json =
      R"({"type":"Precompiled","precompiled_charsmap":")" + base64(table.bytes()) + "\"}";
  EXPECT_EQ(normalized(json, "ﬁne\u3000cafe\u0301\u200B!"), "fine caf\u00E9!");
  EXPECT_EQ(normalized(json, "AABAC"), "aßaC");
  EXPECT_EQ(normalized(json, ""), "");
}

TEST(Charsmap, RefusesBrokenTables) {
  EXPECT_FALSE(charsmap::from_base64("!"));
  EXPECT_FALSE(charsmap::from_bytes("abc"));
  EXPECT_FALSE(charsmap::from_bytes(std::string("\x08\0\0\0abcd", 8)));
  EXPECT_FALSE(charsmap::from_bytes(std::string("\0\0\0\0\xFF", 5)));
  EXPECT_TRUE(charsmap::from_bytes(""));
  std::string wild("\x04\0\0\0\xFF\xFF\xFF\xFF", 8);  // an offset far outside
  auto map = charsmap::from_bytes(wild);
  ASSERT_TRUE(map);
  std::pmr::string out;
  map->apply("abc", out);
  EXPECT_EQ(out, "abc");
}

}  // namespace
}  // namespace lethe

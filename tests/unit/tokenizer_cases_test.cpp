#include <simdjson.h>

#include "runtime/base/utf8.hpp"
#include "tests/places.hpp"
#include "tests/unit/tokenizer_sample.hpp"

namespace lethe {
namespace {

using sample::ids;

ids ids_of(simdjson::dom::element list) {
  ids out;
  for (auto id : list.get_array()) out.push_back(uint32_t(id.get_uint64()));
  return out;
}

std::string text_in(simdjson::dom::element e) { return std::string(std::string_view(e)); }

/// The case's parts and its model as one tokenizer.json.
std::string json_of(simdjson::dom::element file, simdjson::dom::element one) {
  std::string parts = simdjson::minify(one["parts"]);
  std::string_view model = one["model"];
  parts.back() = ',';
  return parts + "\"model\":" + simdjson::minify(file["models"][model]) + "}";
}

std::string streamed(const tokenizer& t, const ids& tokens, bool skip_special) {
  stream_decoder stream(t, skip_special, sample::heap());
  std::string joined;
  for (size_t i = 0; i <= tokens.size(); i++) {
    std::pmr::string piece;
    i < tokens.size() ? stream.push(tokens[i], piece) : stream.flush(piece);
    EXPECT_EQ(utf8::first_invalid(piece), piece.npos);
    joined += piece;
  }
  return joined;
}

TEST(TokenizerCases, AreEncodedAndDecodedAsPublishedOnesAre) {
  simdjson::dom::parser parser;
  simdjson::dom::element file =
      parser.load(std::string(places::test_data) + "/tokenizer_cases.json");
  size_t cases = 0;
  for (auto one : file["cases"].get_array()) {
    SCOPED_TRACE(text_in(one["name"]));
    auto t = sample::made(json_of(file, one));
    size_t i = 0;
    for (auto text : file["texts"].get_array()) {
      auto wanted = ids_of(one["ids"].at(i++));
      EXPECT_EQ(sample::encoded(t, text_in(text), {.add_special = false}), wanted) << i;
    }
    EXPECT_EQ(sample::encoded(t, "hello world"), ids_of(one["around"]));
    for (auto row : one["decode"].get_array()) {
      ids tokens = ids_of(row.at(0));
      EXPECT_EQ(streamed(t, tokens, false), text_in(row.at(1)));
      EXPECT_EQ(streamed(t, tokens, true), text_in(row.at(2)));
    }
    cases++;
  }
  EXPECT_GT(cases, 25u);
}

}  // namespace
}  // namespace lethe

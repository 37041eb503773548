// The examples of RFC 9292, and messages at its edges.
#include <gtest/gtest.h>
#include <simdjson.h>

#include <cstdlib>
#include <filesystem>

#include "tests/places.hpp"
#include "tests/unit/bhttp_messages.hpp"

namespace lethe {
namespace {

using simdjson::dom::element;

std::string text(element e) { return std::string(e.get_string().value()); }

pairs pairs_of(element list) {
  pairs out;
  for (element p : list.get_array()) out.emplace_back(text(p.at(0)), text(p.at(1)));
  return out;
}

void expect_request(element message, const result<bhttp_request_view>& got) {
  ASSERT_TRUE(got) << got.why().text;
  EXPECT_EQ(copied(got->fields), pairs_of(message["headers"]));
  EXPECT_EQ(copied(got->trailers), pairs_of(message["trailers"]));
  EXPECT_EQ(got->content(), from_hex(text(message["content"])));
  if (message["method"].error()) return;
  EXPECT_EQ(got->method, text(message["method"]));
  EXPECT_EQ(got->scheme, text(message["scheme"]));
  EXPECT_EQ(got->authority, text(message["authority"]));
  EXPECT_EQ(got->path, text(message["path"]));
}

void expect_response(element message, const read_response& got) {
  ASSERT_TRUE(got.ok) << got.why;
  EXPECT_EQ(got.status, message["status"].get_uint64().value());
  EXPECT_EQ(got.content, from_hex(text(message["content"])));
  EXPECT_EQ(got.trailers, pairs_of(message["trailers"]));
  EXPECT_EQ(got.fields, pairs_of(message["headers"]));
}

class BhttpEdge : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_FALSE(parser_.load(std::string(places::test_data) + "/bhttp_edge.json").get(root_));
  }
  simdjson::dom::parser parser_;
  element root_;
};

TEST_F(BhttpEdge, InvalidMessagesAreRefusedWithALine) {
  size_t seen = 0;
  for (element c : root_["invalid"]) {
    const auto whole = from_hex(text(c["hex"]));
    if (text(c["kind"]) != "response") {
      auto got = read_request(whole, std::pmr::get_default_resource());
      ASSERT_FALSE(got) << text(c["name"]);
      EXPECT_TRUE(got.why().text.starts_with("bhttp request: ")) << got.why().text;
    }
    if (text(c["kind"]) != "request") {
      auto got = read_all_cuts(whole);
      EXPECT_FALSE(got.ok) << text(c["name"]);
      EXPECT_TRUE(got.why.starts_with("bhttp response: ")) << got.why;
    }
    ++seen;
  }
  EXPECT_EQ(seen, 29u);
}

TEST_F(BhttpEdge, UnusualMessagesAreReadButForThoseThatWeRefuse) {
  size_t seen = 0, stricter = 0;
  for (element c : root_["valid"]) {
    SCOPED_TRACE(text(c["name"]));
    const auto whole = from_hex(text(c["hex"]));
    ++seen;
    if (!c["stricter"].error()) {
      ++stricter;
      EXPECT_FALSE(read_request(whole, std::pmr::get_default_resource()));
    } else if (text(c["kind"]) == "request") {
      expect_request(c["message"], read_request(whole, std::pmr::get_default_resource()));
    } else {
      expect_response(c["message"], read_all_cuts(whole));
    }
  }
  EXPECT_EQ(seen, 11u);
  EXPECT_EQ(stricter, 1u);
}

std::filesystem::path published() {
  const char* there = std::getenv("LETHE_VECTORS");
  return std::filesystem::path(there ? there : places::vectors) / "protocol/bhttp-rfc9292.json";
}

/// What our writer makes of what was read.
std::string rewritten(const bhttp_request_view& r) {
  std::pmr::string out;
  EXPECT_TRUE(write_request({r.method, r.scheme, r.authority, r.path, r.fields, r.content()}, out));
  return std::string(out);
}

TEST(BhttpPublished, TheExamplesOfRfc9292) {
  if (!std::filesystem::exists(published())) {
    const char* ci = std::getenv("CI");
    ASSERT_FALSE(ci && std::string_view(ci) == "true") << "test data is absent: " << published();
    GTEST_SKIP() << "test data is absent: " << published();
  }
  simdjson::dom::parser parser;
  element root;
  ASSERT_FALSE(parser.load(published().string()).get(root));
  size_t seen = 0;
  for (element v : root["vectors"]) {
    SCOPED_TRACE(text(v["name"]));
    const auto whole = from_hex(text(v["hex"]));
    if (text(v["kind"]) == "request") {
      auto got = read_request(whole, std::pmr::get_default_resource());
      expect_request(v["message"], got);
      const bool ours = got && v["framing"].get_uint64().value() == 0;
      EXPECT_EQ(ours ? rewritten(*got) : whole, whole);
    } else {
      expect_response(v["message"], read_all_cuts(whole));
    }
    ++seen;
  }
  EXPECT_EQ(seen, 4u);
}

}  // namespace
}  // namespace lethe

#include <gtest/gtest.h>

#include <array>

#include "tests/unit/bhttp_messages.hpp"

namespace lethe {
namespace {

const std::string zero(1, '\0');
const std::string ok_status = "\x40\xc8", early_hints = "\x40\x67";
const std::string known = "\1" + ok_status, in_chunks = "\3" + ok_status;

std::string written(const std::vector<std::string>& pieces) {
  const std::array<bhttp_field, 2> fields = {{{"content-type", "text/event-stream"}, {"x", ""}}};
  bhttp_response_writer writer;
  std::pmr::string out;
  EXPECT_TRUE(writer.head(200, fields, out));
  for (const auto& p : pieces) writer.content(p, out);
  writer.end(out);
  return std::string(out);
}

TEST(BhttpResponse, IsReadAsItWasWrittenHoweverItIsCut) {
  for (const auto& padding : {std::string(), std::string(40, '\0')}) {
    const auto got = read_all_cuts(written({"one", "", std::string(70, '2'), zero}) + padding);
    ASSERT_TRUE(got.ok) << got.why;
    EXPECT_EQ(got.status, 200u);
    EXPECT_EQ(got.fields, (pairs{{"content-type", "text/event-stream"}, {"x", ""}}));
    EXPECT_EQ(got.content, "one" + std::string(70, '2') + zero);
    EXPECT_TRUE(got.trailers.empty());
  }
}

TEST(BhttpResponse, AnEmptyPieceIsNoChunk) { EXPECT_EQ(written({"", "a", ""}), written({"a"})); }

TEST(BhttpResponse, OfKnownLengthIsReadHoweverItIsCut) {
  const auto head = sized(line("a", "b") + line("c", "d"));
  const auto got = read_all_cuts(known + head + sized(std::string(100, 'x')) +
                                 sized(line("t", "u")) + std::string(9, '\0'));
  ASSERT_TRUE(got.ok) << got.why;
  EXPECT_EQ(got.fields, (pairs{{"a", "b"}, {"c", "d"}}));
  EXPECT_EQ(got.content, std::string(100, 'x'));
  EXPECT_EQ(got.trailers, (pairs{{"t", "u"}}));
}

TEST(BhttpResponse, InformationalOnesAreSkippedHoweverItIsCut) {
  const auto hint = early_hints + sized(line("link", "</a>"));
  const auto got = read_all_cuts("\1" + hint + hint + ok_status + sized(line("a", "b")));
  ASSERT_TRUE(got.ok) << got.why;
  EXPECT_EQ(got.status, 200u);
  EXPECT_EQ(got.fields, (pairs{{"a", "b"}}));
  // A final response whose fields are left out has none, also after one that had some.
  const auto bare = read_all_cuts("\1" + hint + ok_status);
  ASSERT_TRUE(bare.ok) << bare.why;
  EXPECT_TRUE(bare.fields.empty());
}

TEST(BhttpResponse, ContentComesAsSoonAsItIsThere) {
  bhttp_response_reader reader(std::pmr::get_default_resource());
  std::pmr::string content;
  ASSERT_TRUE(reader.feed(in_chunks + line("a", "b"), content));
  EXPECT_FALSE(reader.has_head());
  ASSERT_TRUE(reader.feed(zero, content));
  ASSERT_TRUE(reader.has_head());
  EXPECT_EQ(reader.status(), 200u);
  EXPECT_EQ(copied(reader.fields()), (pairs{{"a", "b"}}));
  ASSERT_TRUE(reader.feed("\5he", content));
  EXPECT_EQ(content, "he");
  content.clear();
  ASSERT_TRUE(reader.feed("llo\1", content));
  EXPECT_EQ(content, "llo");
  ASSERT_TRUE(reader.feed("!" + zero, content));
  EXPECT_EQ(content, "llo!");
  EXPECT_FALSE(reader.done());
  ASSERT_TRUE(reader.feed(zero, content));
  EXPECT_TRUE(reader.done());
  ASSERT_TRUE(reader.feed(std::string(1000, '\0'), content));
  EXPECT_TRUE(reader.finish());
  EXPECT_EQ(content, "llo!");
}

/// Cut anywhere else than where a section begins, it is truncated (RFC 9292 section 3.8).
TEST(BhttpResponse, EndsOnlyWhereASectionBegins) {
  const auto lines = line("a", "b") + line("cc", "dd");
  const std::string known_parts[] = {known, sized(lines), sized("hello"), sized(line("t", "u"))};
  const std::string chunk_parts[] = {in_chunks, lines + zero, sized("he") + sized("llo") + zero,
                                     line("t", "u") + zero};
  for (const auto& parts : {known_parts, chunk_parts}) {
    std::string whole;
    std::vector<size_t> ends;
    for (size_t i = 0; i < 4; ++i) ends.push_back((whole += parts[i]).size());
    for (size_t cut = 0; cut <= whole.size(); ++cut) {
      const bool fine = std::find(ends.begin(), ends.end(), cut) != ends.end();
      const auto got = read_pieces({whole.substr(0, cut)});
      EXPECT_EQ(got.ok, fine) << cut;
      if (got.ok) {
        EXPECT_EQ(got.content, cut >= ends[2] ? "hello" : "");
      } else {
        EXPECT_NE(got.why.find("ends too early"), std::string::npos) << got.why;
      }
    }
  }
}

TEST(BhttpResponse, MalformedOnesAreRefusedHoweverTheyAreCut) {
  const std::string endless = "\xff\xff\xff\xff\xff\xff\xff\xff";
  struct {
    std::string whole;
    const char* why;
  } const cases[] = {
      {"", "ends too early"},
      {zero, "framing indicator is not a response's"},
      {"\2", "framing indicator is not a response's"},
      {"\4", "framing indicator is not a response's"},
      {"\1\x40\x63", "100 to 599"},
      {"\1\x42\x58", "100 to 599"},
      {"\1" + early_hints, "ends too early"},
      {"\1" + early_hints + zero, "ends too early"},
      {"\1" + early_hints + sized(line("A", "b")) + ok_status, "line 1: its name"},
      {known + sized(line("te", "b")), "about a connection"},
      {in_chunks + line("a", "b ") + zero, "line 1: its value"},
      {known + sized("\1a\2b"), "run past the section's end"},
      {known + zero + zero + sized(line("a", "\r")), "trailer section, line 1: its value"},
      {known + zero + zero + zero + zero + "\1", "zero padding"},
      {in_chunks + zero + zero + zero + zero + "a", "zero padding"},
      {known + endless, "takes more than"},
      {in_chunks + endless, "takes more than"},
      {in_chunks + "\1a" + endless, "takes more than"},
      {known + zero + endless, "bytes of content"},
      {in_chunks + zero + sized("x") + endless, "bytes of content"},
  };
  for (const auto& c : cases) {
    const auto got = read_all_cuts(c.whole);
    EXPECT_FALSE(got.ok) << c.why;
    EXPECT_NE(got.why.find(c.why), std::string::npos) << c.why << ": " << got.why;
  }
}

TEST(BhttpResponse, OnceRefusedItStaysRefused) {
  bhttp_response_reader reader(std::pmr::get_default_resource());
  std::pmr::string content;
  EXPECT_FALSE(reader.feed("\4", content));
  EXPECT_FALSE(reader.feed(written({"x"}), content));
  EXPECT_FALSE(reader.finish());
  EXPECT_FALSE(reader.has_head());
  EXPECT_FALSE(reader.done());
  EXPECT_TRUE(content.empty());
}

TEST(BhttpResponse, MovedItsFieldsStayReadable) {
  bhttp_response_reader first(std::pmr::get_default_resource());
  std::pmr::string content;
  ASSERT_TRUE(first.feed(in_chunks + line("a", "b") + zero + "\2x", content));
  auto second = std::make_unique<bhttp_response_reader>(std::move(first));
  ASSERT_TRUE(second->feed("y", content));
  EXPECT_EQ(copied(second->fields()), (pairs{{"a", "b"}}));
  EXPECT_EQ(content, "xy");
}

TEST(BhttpResponse, ContentIsBoundedByTheCaller) {
  for (const auto& whole :
       {known + zero + sized("12345"), in_chunks + zero + sized("12") + sized("345") + zero}) {
    EXPECT_TRUE(read_pieces({whole}, 6).ok);
    EXPECT_TRUE(read_pieces({whole}, 5).ok);
    EXPECT_FALSE(read_pieces({whole}, 4).ok);
    EXPECT_FALSE(read_pieces({whole}, 0).ok);
  }
}

TEST(BhttpResponse, FieldsAndInformationalOnesAreBounded) {
  std::string lines, hints;
  for (uint32_t i = 0; i < limits::bhttp_fields_max; ++i) lines += line("a", "b");
  EXPECT_TRUE(read_pieces({known + sized(lines)}).ok);
  EXPECT_TRUE(read_pieces({in_chunks + lines + zero}).ok);
  EXPECT_FALSE(read_pieces({known + sized(lines + line("a", "b"))}).ok);
  EXPECT_FALSE(read_pieces({in_chunks + lines + line("a", "b") + zero}).ok);
  for (uint32_t i = 0; i < limits::bhttp_informational_max; ++i) hints += early_hints + zero;
  EXPECT_TRUE(read_pieces({"\1" + hints + ok_status}).ok);
  EXPECT_FALSE(read_pieces({"\1" + hints + early_hints + zero + ok_status}).ok);
}

/// Counts what is held, and refuses nothing.
struct counting_resource : std::pmr::memory_resource {
  size_t held = 0, most = 0;
  void* do_allocate(size_t bytes, size_t align) override {
    most = std::max(most, held += bytes);
    return std::pmr::new_delete_resource()->allocate(bytes, align);
  }
  void do_deallocate(void* at, size_t bytes, size_t align) override {
    held -= bytes;
    std::pmr::new_delete_resource()->deallocate(at, bytes, align);
  }
  bool do_is_equal(const memory_resource& o) const noexcept override { return this == &o; }
};

/// A section that never ends is refused before much of it is held, whatever its lines look like.
TEST(BhttpResponse, LittleIsHeldInWait) {
  const auto big = sized(std::string(16000, 'v'));
  for (const auto& unit : {line("a", "b"), "\1a" + big, sized(std::string(16000, 'n')) + "\1a"}) {
    counting_resource counted;
    bhttp_response_reader reader(&counted);
    std::pmr::string content;
    ASSERT_TRUE(reader.feed(in_chunks, content));
    bool refused = false;
    size_t fed = 0;
    for (; !refused && fed < 4 * limits::bhttp_section_bytes_max; ++fed)
      refused = !reader.feed({&unit[fed % unit.size()], 1}, content);
    EXPECT_TRUE(refused);
    EXPECT_LE(fed, limits::bhttp_section_bytes_max + 8);
    EXPECT_LE(counted.most, 4 * limits::bhttp_section_bytes_max);
  }
}

TEST(BhttpResponse, ContentIsNotHeld) {
  counting_resource counted;
  bhttp_response_reader reader(&counted);
  std::pmr::string content;
  const std::string length("\x81\0\0\0", 4);  // 1 << 24
  ASSERT_TRUE(reader.feed(known + sized(line("a", "b")) + length, content));
  const std::string piece(1 << 16, 'x');
  for (size_t fed = 0; fed < 1u << 24; fed += piece.size()) {
    ASSERT_TRUE(reader.feed(piece, content));
    ASSERT_EQ(content.size(), piece.size());
    content.clear();
  }
  EXPECT_TRUE(reader.finish());
  EXPECT_LE(counted.most, 1024u);
}

TEST(BhttpResponse, HeadsThatReadersWouldRefuseAreNotWritten) {
  const bhttp_field good{"a", "b"};
  const bhttp_field bad[] = {{"A", "b"}, {"upgrade", "b"}, {"a", "b\n"}};
  bhttp_response_writer writer;
  std::pmr::string out;
  for (const auto& f : bad) EXPECT_FALSE(writer.head(200, {&f, 1}, out));
  for (uint32_t status : {0u, 100u, 199u, 600u}) EXPECT_FALSE(writer.head(status, {}, out));
  EXPECT_TRUE(out.empty());
  EXPECT_TRUE(writer.head(599, {&good, 1}, out));
  EXPECT_TRUE(bhttp_response_writer().head(200, {}, out));
}

TEST(BhttpResponseDeath, PartsComeInOrder) {
  std::pmr::string out;
  EXPECT_DEATH(bhttp_response_writer().content("x", out), "response_writer.cpp");
  EXPECT_DEATH(bhttp_response_writer().end(out), "response_writer.cpp");
  EXPECT_DEATH(bhttp_response_reader(std::pmr::get_default_resource()).status(),
               "response_reader.cpp");
}

}  // namespace
}  // namespace lethe

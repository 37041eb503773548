#include <gtest/gtest.h>

#include <array>

#include "tests/unit/bhttp_messages.hpp"

namespace lethe {
namespace {

auto* const memory = std::pmr::get_default_resource();
const std::string control = sized("POST") + sized("https") + sized("a.example") + sized("/v1");
const std::string known = '\0' + control, in_chunks = '\2' + control;
const std::string zero(1, '\0');

std::string why(const std::string& whole) {
  auto got = read_request(whole, memory);
  return got ? "" : got.why().text;
}

bool inside(std::string_view part, std::string_view whole) {
  return part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size();
}

TEST(BhttpRequest, IsReadAsItWasWritten) {
  const std::array<bhttp_field, 3> fields = {
      {{"content-type", "application/json"}, {"a", ""}, {"a", "b\tc \xc3\xa9"}}};
  std::string content(70000, 'x');
  content[3] = '\0';
  std::pmr::string out = "before";
  ASSERT_TRUE(write_request({.authority = "a.example:443",
                             .path = "/v1/chat/completions?x=1",
                             .fields = fields,
                             .content = content},
                            out));
  const auto whole = std::string(out.substr(6));
  for (const auto& padding : {std::string(), std::string(1, '\0'), std::string(5000, '\0')}) {
    const auto padded = whole + padding;
    auto got = read_request(padded, memory);
    ASSERT_TRUE(got) << got.why().text;
    EXPECT_EQ(got->method, "POST");
    EXPECT_EQ(got->scheme, "https");
    EXPECT_EQ(got->authority, "a.example:443");
    EXPECT_EQ(got->path, "/v1/chat/completions?x=1");
    EXPECT_EQ(copied(got->fields), copied(fields));
    EXPECT_EQ(got->content(), content);
    EXPECT_TRUE(inside(got->content(), padded)) << "copied without need";
    EXPECT_TRUE(inside(got->fields[2].value, padded));
  }
}

TEST(BhttpRequest, HasAPublishedForm) {
  // RFC 9292 section 5.1.
  const std::array<bhttp_field, 3> fields = {
      {{"user-agent", "curl/7.16.3 libcurl/7.16.3 OpenSSL/0.9.7l zlib/1.2.3"},
       {"host", "www.example.com"},
       {"accept-language", "en, mi"}}};
  std::pmr::string out;
  ASSERT_TRUE(write_request({.method = "GET", .path = "/hello.txt", .fields = fields}, out));
  EXPECT_EQ(
      std::string(out),
      from_hex("0003474554056874747073000a2f68656c6c6f2e747874406c0a757365722d6167656e74346375"
               "726c2f372e31362e33206c69626375726c2f372e31362e33204f70656e53534c2f302e392e376c"
               "207a6c69622f312e322e3304686f73740f7777772e6578616d706c652e636f6d0f616363657074"
               "2d6c616e677561676506656e2c206d690000"));
}

TEST(BhttpRequest, OneChunkStaysInPlaceAndSeveralAreJoinedInTheGivenMemory) {
  const auto one = in_chunks + line("a", "b") + zero + sized("hello") + zero + zero;
  auto got = read_request(one, memory);
  ASSERT_TRUE(got) << got.why().text;
  EXPECT_EQ(got->content(), "hello");
  EXPECT_TRUE(inside(got->content(), one));

  const auto three =
      in_chunks + zero + sized("he") + sized("ll") + sized("o") + zero + line("t", "u") + zero;
  std::array<std::byte, 1024> room;
  std::pmr::monotonic_buffer_resource arena(room.data(), room.size(),
                                            std::pmr::null_memory_resource());
  auto joined = read_request(three, &arena);
  ASSERT_TRUE(joined) << joined.why().text;
  EXPECT_EQ(joined->content(), "hello");
  EXPECT_TRUE(inside(joined->content(), {reinterpret_cast<char*>(room.data()), room.size()}));
  EXPECT_EQ(copied(joined->trailers), (pairs{{"t", "u"}}));
}

/// Cut anywhere else than where a section begins, no request is read (RFC 9292 section 3.8).
TEST(BhttpRequest, EndsOnlyWhereASectionBegins) {
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
      const auto got = read_request(std::string_view(whole).substr(0, cut), memory);
      EXPECT_EQ(bool(got), fine) << cut;
      if (!got) continue;
      EXPECT_EQ(got->fields.size(), cut >= ends[1] ? 2u : 0u);
      EXPECT_EQ(got->content(), cut >= ends[2] ? "hello" : "");
      EXPECT_EQ(got->trailers.size(), cut >= ends[3] ? 1u : 0u);
    }
  }
}

struct refused_case {
  std::string whole;
  const char* why;
};

TEST(BhttpRequest, MalformedOnesAreRefusedAndTheReasonIsSaid) {
  const auto with = [](const std::string& l) { return known + sized(l); };
  const auto asks = [](const char* method, const char* scheme, const char* authority,
                       const char* path) {
    return zero + sized(method) + sized(scheme) + sized(authority) + sized(path);
  };
  const refused_case cases[] = {
      {"", "ends inside its framing indicator"},
      {"\x40", "ends inside its framing indicator"},
      {"\1" + control, "framing indicator is not a request's"},
      {"\3" + control, "framing indicator is not a request's"},
      {asks("", "https", "a", "/"), "its method is not a token"},
      {asks("G T", "https", "a", "/"), "its method is not a token"},
      {asks("GET", "", "a", "/"), "its scheme"},
      {asks("GET", "1a", "a", "/"), "its scheme"},
      {asks("GET", "https", "a b", "/"), "its authority"},
      {asks("GET", "https", "a", ""), "its path"},
      {asks("GET", "https", "a", "v1"), "its path"},
      {asks("GET", "https", "a", "/\r\nx: y"), "its path"},
      {asks("GET", "https", "a", "/\xc3\xa9"), "its path"},
      {with(line("", "x")), "line 1: its name"},
      {with(line("a", "x") + line("A", "x")), "line 2: its name"},
      {with(line(":path", "/")), "line 1: its name"},
      {with(line(std::string("a\0", 2), "/")), "line 1: its name"},
      {with(line("a", "x\x7f")), "line 1: its value"},
      {with(line("a", "x\x01y")), "line 1: its value"},
      {with(line("a", "\tx")), "line 1: its value"},
      {with(line("a", " ")), "line 1: its value"},
      {with("\1a\2b"), "line 1: its lengths run past the section's end"},
      {known + zero + sized("x") + sized(line("b", "\n")), "trailer section, line 1: its value"},
      {in_chunks + line("a", "b"), "header section ends too early"},
      {in_chunks + zero + sized("x"), "a chunk of length 0 ends it"},
      {in_chunks + zero + "\5x", "ends inside a chunk"},
      {in_chunks + zero + "\x40", "ends inside its content"},
      {known + zero + "\2x", "ends inside its content"},
      {known + zero + "\x40", "ends inside the length of its content"},
      {known + zero + zero + zero + zero + "\1", "zero padding"},
      {known + "\xff\xff\xff\xff\xff\xff\xff\xff", "takes more than"},
      {in_chunks + "\xff\xff\xff\xff\xff\xff\xff\xff", "takes more than"},
      {in_chunks + "\1a\xff\xff\xff\xff\xff\xff\xff\xff", "takes more than"},
      {known + zero + "\xff\xff\xff\xff\xff\xff\xff\xff", "bytes of content"},
      {in_chunks + zero + sized("x") + "\xff\xff\xff\xff\xff\xff\xff\xff", "bytes of content"},
  };
  for (const auto& c : cases)
    EXPECT_NE(why(c.whole).find(c.why), std::string::npos) << c.why << ": " << why(c.whole);
}

TEST(BhttpRequest, FieldsOfAConnectionAreRefused) {
  for (auto name :
       {"connection", "keep-alive", "proxy-connection", "te", "transfer-encoding", "upgrade"}) {
    EXPECT_NE(why(known + sized(line(name, "x"))).find("about a connection"), std::string::npos);
    EXPECT_NE(why(in_chunks + line(name, "x") + zero).find("about a connection"),
              std::string::npos);
    EXPECT_EQ(why(known + sized(line(std::string(name) + "s", "x"))), "");
  }
}

TEST(BhttpRequest, TheNumberAndBytesOfFieldsAreBounded) {
  std::string most;
  for (uint32_t i = 0; i < limits::bhttp_fields_max; ++i) most += line("a", "b");
  const auto more = most + line("a", "b");
  EXPECT_EQ(why(known + sized(most)), "");
  EXPECT_EQ(why(in_chunks + most + zero), "");
  EXPECT_NE(why(known + sized(more)).find("more than 64 fields"), std::string::npos);
  EXPECT_NE(why(in_chunks + more + zero).find("more than 64 fields"), std::string::npos);
  // A line of that size has 1 + 1 bytes for its name and 4 for its value's length.
  const std::string value(limits::bhttp_section_bytes_max - 6, 'v');
  const auto room = [&](size_t less) {
    std::string l = sized("a");
    const size_t n = value.size() - less;
    for (uint32_t shift : {24, 16, 8, 0}) l.push_back(char(((n | 0x80000000u) >> shift) & 0xff));
    return l + value.substr(less);
  };
  for (size_t less : {0, 1}) {
    EXPECT_EQ(why(known + sized(room(less))), "");
    EXPECT_EQ(why(in_chunks + room(less) + zero), "");
  }
  const auto above = line("z", "") + room(2);
  ASSERT_EQ(above.size(), limits::bhttp_section_bytes_max + 1);
  EXPECT_NE(why(known + sized(above)).find("takes more than 16384 bytes"), std::string::npos);
  EXPECT_NE(why(in_chunks + above + zero).find("takes more than 16384 bytes"), std::string::npos);
}

TEST(BhttpRequest, ControlDataIsBounded) {
  const auto with_path = [](size_t bytes) {
    return zero + sized("GET") + sized("https") + sized("a") +
           sized("/" + std::string(bytes - 1, 'p'));
  };
  EXPECT_EQ(why(with_path(limits::bhttp_control_bytes_max - 1)), "");
  EXPECT_EQ(why(with_path(limits::bhttp_control_bytes_max)), "");
  EXPECT_NE(why(with_path(limits::bhttp_control_bytes_max + 1)).find("at most 4096 bytes"),
            std::string::npos);
}

TEST(BhttpRequest, ContentIsBoundedByTheCaller) {
  for (const auto& whole :
       {known + zero + sized("12345"), in_chunks + zero + sized("12") + sized("345") + zero}) {
    EXPECT_TRUE(read_request(whole, memory, 6));
    EXPECT_TRUE(read_request(whole, memory, 5));
    EXPECT_FALSE(read_request(whole, memory, 4));
    EXPECT_FALSE(read_request(whole, memory, 0));
  }
}

TEST(BhttpRequest, WhatReadersWouldRefuseIsNotWritten) {
  const bhttp_field bad[] = {{"A", "b"}, {"te", "b"}, {"a", "b\r\nc: d"}, {"", "b"}};
  for (const auto& f : bad) {
    std::pmr::string out = "as it was";
    EXPECT_FALSE(write_request({.path = "/", .fields = {&f, 1}}, out));
    EXPECT_EQ(out, "as it was");
  }
  std::vector<bhttp_field> many(limits::bhttp_fields_max, {"a", "b"});
  std::pmr::string out;
  EXPECT_TRUE(write_request({.path = "/", .fields = many}, out));
  many.push_back({"a", "b"});
  EXPECT_FALSE(write_request({.path = "/", .fields = many}, out));
  const std::string long_value(limits::bhttp_section_bytes_max, 'v');
  const bhttp_field heavy{"a", long_value};
  EXPECT_FALSE(write_request({.path = "/", .fields = {&heavy, 1}}, out));
  EXPECT_FALSE(write_request({.method = "", .path = "/"}, out));
  EXPECT_FALSE(write_request({.path = "no slash"}, out));
}

TEST(BhttpRequest, ErrorsHoldNothingOfTheRequest) {
  const std::string canary = "canary";
  for (const auto& whole :
       {zero + sized("GET " + canary) + sized("https") + sized("") + sized("/"),
        known + sized(line(canary + " ", "x")), known + sized(line("a", canary + "\n")),
        known + zero + sized(canary) + zero + canary}) {
    EXPECT_NE(why(whole), "");
    EXPECT_EQ(why(whole).find(canary), std::string::npos) << why(whole);
  }
}

}  // namespace
}  // namespace lethe

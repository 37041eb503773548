// What stands inside the outer layer, sorted; and how answers leave.
#include <gtest/gtest.h>

#include "runtime/base/varint.hpp"
#include "runtime/bhttp/response_reader.hpp"
#include "runtime/crypto/ohttp_request.hpp"
#include "runtime/gateway/outer_answer.hpp"
#include "runtime/gateway/sealed_names.hpp"
#include "runtime/token/base64url.hpp"

namespace lethe {
namespace {

using fields = std::vector<bhttp_field>;

const std::string authorization{as_text(write_authorization(private_token{}).view())};
const std::string change = to_base64url(token_request{}.to_bytes());

/// 0: it was understood.
uint32_t status_of(const bhttp_request& r) {
  std::pmr::string bytes;
  EXPECT_TRUE(write_request(r, bytes));
  auto read = read_request(bytes, std::pmr::get_default_resource());
  EXPECT_TRUE(read);
  auto wants = read_inner(*read);
  auto* problem = std::get_if<inner_problem>(&wants);
  return problem ? problem->status : 0;
}

uint32_t sealed_status(const fields& with, std::string_view method = "POST") {
  return status_of({.method = method,
                    .authority = "x",
                    .path = sealed_names::sealed_path,
                    .fields = with,
                    .content = "sealed"});
}

TEST(InnerRequest, PagesAreLookedAt) {
  for (const char* path :
       {"/checkpoint", "/tile/0/000.p/3", "/roster", "/roster/12", "/issuer-directory"}) {
    EXPECT_EQ(status_of({.method = "GET", .authority = "x", .path = path}), 0u) << path;
    EXPECT_EQ(status_of({.method = "POST", .authority = "x", .path = path}), 405u) << path;
  }
  for (const char* path : {"/", "/rosters", "/checkpoint/", "/v1/models", "/tiles"})
    EXPECT_EQ(status_of({.method = "GET", .authority = "x", .path = path}), 404u) << path;
}

TEST(InnerRequest, ASealedRequestHasItsTypeATokenAndAChangeRequest) {
  fields good = {{"content-type", sealed_names::request},
                 {"authorization", authorization},
                 {sealed_names::change_field, change}};
  EXPECT_EQ(sealed_status(good), 0u);
  EXPECT_EQ(sealed_status(good, "GET"), 405u);
  for (auto [index, status] : {std::pair(0u, 415u), {1u, 401u}, {2u, 400u}}) {
    fields without = good;
    without.erase(without.begin() + index);
    EXPECT_EQ(sealed_status(without), status);
    fields twice = good;
    twice.push_back(good[index]);
    EXPECT_EQ(sealed_status(twice), status);
    fields cut = good;
    cut[index].value.remove_suffix(1);
    EXPECT_EQ(sealed_status(cut), status);
  }
}

TEST(InnerRequest, AClaimHasExactlyItsBytes) {
  private_token token;
  std::string bytes{as_text(token.to_bytes())};
  bytes += as_text(token_request{}.to_bytes());
  bhttp_field type{"content-type", sealed_names::claim};
  auto status = [&](std::string_view content) {
    return status_of({.authority = "x",
                      .path = sealed_names::change_path,
                      .fields = {&type, 1},
                      .content = content});
  };
  EXPECT_EQ(status(bytes), 0u);
  for (size_t n = 0; n < bytes.size(); ++n) ASSERT_EQ(status(bytes.substr(0, n)), 400u) << n;
  EXPECT_EQ(status(bytes + "x"), 400u);
  bytes[1] = 3;  // another type of token
  EXPECT_EQ(status(bytes), 400u);
}

/// Both ends of one exchange.
struct both_ends {
  explicit both_ends(ohttp_form form) {
    auto keys = ohttp_keys::make({});
    auto published = read_ohttp_keys(keys->published());
    auto sealer = ohttp_request_sealer::make(published->front(), form);
    std::vector<std::byte> message;
    EXPECT_TRUE(sealer->seal({}, true, message));
    client.emplace(*sealer->answer());
    ohttp_request_opener opener(*keys, form, 0);
    std::pmr::string nothing;
    EXPECT_TRUE(opener.push(message, nothing));
    gateway.emplace(*opener.finish(nothing));
  }
  /// Status and content, as the client reads them.
  std::pair<uint32_t, std::string> read(bytes_view sealed) {
    std::pmr::string plain, content;
    bhttp_response_reader reader(std::pmr::get_default_resource());
    EXPECT_TRUE(client->push(sealed, plain));
    EXPECT_TRUE(client->finish(plain));
    EXPECT_TRUE(reader.feed(plain, content));
    EXPECT_TRUE(reader.finish());
    fields_of.clear();
    for (const auto& f : reader.fields())
      fields_of.emplace_back(std::string(f.name), std::string(f.value));
    return {reader.status(), std::string(content)};
  }
  std::optional<ohttp_answer_opener> client;
  std::optional<outer_answer> gateway;
  std::vector<std::pair<std::string, std::string>> fields_of;
};

TEST(OuterAnswer, BothFormsArriveAsTheyWereWritten) {
  for (auto form : {ohttp_form::whole, ohttp_form::chunked})
    for (size_t size : {size_t{0}, size_t{1}, size_t{16'384}, size_t{16'385}, size_t{100'000}}) {
      both_ends x(form);
      std::string text(size, 'a');
      std::vector<std::byte> out;
      ASSERT_TRUE(x.gateway->head(200, {}));
      ASSERT_TRUE(x.gateway->content(text, out));
      EXPECT_EQ(out.empty(), form == ohttp_form::whole);
      ASSERT_TRUE(x.gateway->end("z", out));
      EXPECT_TRUE(x.gateway->ended());
      EXPECT_EQ(x.read(out), std::pair(200u, text + "z")) << size;
    }
}

TEST(OuterAnswer, AWholeOneHasALimitAndThenSaysSo) {
  both_ends x(ohttp_form::whole);
  std::vector<std::byte> out;
  std::string half(outer_answer::whole_bytes_max / 2, 'a');
  ASSERT_TRUE(x.gateway->head(200, {}));
  ASSERT_TRUE(x.gateway->content(half, out));
  EXPECT_FALSE(x.gateway->content(half, out));
  // However near the bound it ends, the next byte is refused: what frames a piece counts, too.
  for (size_t under = 0; under < 64; ++under) {
    both_ends near(ohttp_form::whole);
    ASSERT_TRUE(near.gateway->head(200, {}));
    if (!near.gateway->content(std::string(outer_answer::whole_bytes_max - under, 'a'), out))
      continue;
    EXPECT_FALSE(near.gateway->content(half, out)) << under;
  }
  out.clear();
  both_ends chunked(ohttp_form::chunked);
  ASSERT_TRUE(chunked.gateway->head(200, {}));
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(chunked.gateway->content(half, out));
}

/// What each frame takes, the stream's nonce aside.
std::vector<size_t> frame_sizes(bytes_view answer) {
  std::vector<size_t> sizes;
  auto stream = as_text(answer).substr(16);
  while (!stream.empty()) {
    const size_t before = stream.size();
    auto length = take_varint(stream);
    EXPECT_TRUE(length);
    if (!length) break;
    stream.remove_prefix(*length ? std::min<size_t>(*length, stream.size()) : stream.size());
    sizes.push_back(before - stream.size());
  }
  return sizes;
}

/// Of sealed chunks that have one size; the last one's frame is a byte shorter (section 5).
TEST(OuterAnswer, OneSealedChunkIsOneChunkAndAllButTheFirstHaveOneSize) {
  for (size_t chunk : {size_t{256}, size_t{2048}, size_t{8192}})
    for (size_t chunks : {2, 4, 8}) {
      both_ends x(ohttp_form::chunked);
      bhttp_field type{"content-type", sealed_names::response};
      const std::string sealed(2 + chunk + 16, 'a');
      std::vector<std::byte> out;
      ASSERT_TRUE(x.gateway->head(200, {&type, 1}));
      ASSERT_TRUE(x.gateway->content("a nonce 16 bytes" + sealed, out));
      for (size_t i = 2; i < chunks; ++i) ASSERT_TRUE(x.gateway->content(sealed, out));
      ASSERT_TRUE(x.gateway->end(std::string_view(sealed).substr(1), out));
      auto sizes = frame_sizes(out);
      ASSERT_EQ(sizes.size(), chunks);
      const size_t head = sizes[0] - sizes[1];
      EXPECT_EQ(head, 16 + 4 + 1 + 12 + 1 + sealed_names::response.size() + 1 - 1) << chunk;
      EXPECT_EQ(std::vector<size_t>(sizes.begin() + 1, sizes.end()),
                std::vector<size_t>(chunks - 1, sealed.size() + 20));
    }
}

TEST(OuterAnswer, AProblemSaysWhetherChangeIsDue) {
  for (auto [word, said] : {std::pair(change_word::due, "due"), {change_word::none, "none"}}) {
    both_ends x(ohttp_form::whole);
    std::vector<std::byte> out;
    ASSERT_TRUE(x.gateway->problem({.status = 503, .title = "t", .change = word}, out));
    auto [status, text] = x.read(out);
    EXPECT_EQ(status, 503u);
    EXPECT_EQ(text, R"({"title":"t","status":503})");
    ASSERT_EQ(x.fields_of.size(), 2u);
    EXPECT_EQ(x.fields_of[1], (std::pair<std::string, std::string>("lethe-change", said)));
  }
}

}  // namespace
}  // namespace lethe

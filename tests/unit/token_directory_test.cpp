#include "runtime/token/token_directory.hpp"

#include "runtime/token/base64url.hpp"
#include "runtime/token/token_limits.hpp"
#include "tests/unit/token_samples.hpp"

namespace lethe {
namespace {

using namespace test;

std::string key_text(size_t i) {
  std::string text(base64url_chars(token_spki_bytes), '\0');
  write_base64url(key_of_test(i).published().spki(), text);
  return text;
}

std::string one_key(const std::string& fields, const std::string& rest = "") {
  return R"({"issuer-request-uri":"/issue",)" + rest + R"("token-keys":[{)" + fields + "}]}";
}

TEST(TokenDirectory, SaysTheKeysInTheOrderThatClientsTryThem) {
  const token_issuer issuer = issuer_of_test();
  const token_directory d = issuer.directory("https://issuer.example/issue", 250);
  ASSERT_EQ(d.keys.size(), 3u);
  auto read = read_directory(write_directory(d));
  ASSERT_TRUE(read) << read.why().text;
  EXPECT_EQ(*read, d);
  for (uint64_t time : {100u, 199u, 200u, 250u, 299u, 300u})
    EXPECT_EQ(read->usable(time)->key, issuer.current(time)->spki()) << time;
  EXPECT_EQ(read->usable(99), nullptr);
  EXPECT_EQ(issuer.directory("/", 300).keys.size(), 2u) << "without the one that retired";
}

TEST(TokenDirectory, UsesTheFirstKeyThatIsValid) {
  token_directory d{.issuer_request_uri = "/"};
  for (size_t i : {0, 1, 2}) d.keys.push_back({key_of_test(i).published().spki(), {}});
  EXPECT_EQ(d.usable(0), &d.keys[0]) << "no time: always valid";
  d.keys[0].not_before_s = 11;
  d.keys[1].not_before_s = 10;
  EXPECT_EQ(d.usable(9), &d.keys[2]);
  EXPECT_EQ(d.usable(10), &d.keys[1]);
  EXPECT_EQ(d.usable(11), &d.keys[0]);
}

TEST(TokenDirectory, SaysOfAKeyHowManyBoughtUnderIt) {
  token_directory d = issuer_of_test().directory("/issue", 250);
  EXPECT_TRUE(d.over(99).empty());
  EXPECT_TRUE(d.over(199).empty());
  ASSERT_EQ(d.over(250).size(), 1u);
  EXPECT_EQ(d.over(250)[0].key, key_of_test(0).published().spki());
  EXPECT_EQ(d.over(300).size(), 2u);
  for (uint64_t buyers : {uint64_t{0}, uint64_t{20}, ~uint64_t{0}}) {
    d.keys.back().buyers = buyers;
    auto read = read_directory(write_directory(d));
    ASSERT_TRUE(read) << read.why().text;
    EXPECT_EQ(*read, d);
    EXPECT_EQ(read->over(250)[0].buyers, buyers);
    EXPECT_FALSE(read->usable(250)->buyers);
  }
}

TEST(TokenDirectory, LeavesOutWhatItDoesNotKnow) {
  auto read =
      read_directory(R"({"x":[1,{"token-keys":2}],"issuer-request-uri":"/issue","token-keys":[
    {"token-type":1,"token-key":7},{"token-type":65535},
    {"y":null,"token-type":2,"token-key":")" +
                     key_text(0) + R"("}]})");
  ASSERT_TRUE(read) << read.why().text;
  ASSERT_EQ(read->keys.size(), 1u);
  EXPECT_EQ(read->keys[0].key, key_of_test(0).published().spki());
  EXPECT_FALSE(read->keys[0].not_before_s);
}

TEST(TokenDirectory, RefusesWhatIsBroken) {
  const std::string key = R"("token-key":")" + key_text(0) + '"', type = R"("token-type":2,)";
  ASSERT_TRUE(read_directory(one_key(type + key)));
  for (const std::string& bad : {std::string(),
                                 std::string("[]"),
                                 std::string("{}"),
                                 std::string("null"),
                                 std::string(R"({"issuer-request-uri":"/i"})"),
                                 std::string(R"({"token-keys":[]})"),
                                 std::string(R"({"issuer-request-uri":"","token-keys":[]})"),
                                 std::string(R"({"issuer-request-uri":"/a b","token-keys":[]})"),
                                 std::string(R"({"issuer-request-uri":"/\u00e9","token-keys":[]})"),
                                 std::string(R"({"issuer-request-uri":1,"token-keys":[]})"),
                                 std::string(R"({"issuer-request-uri":"/","token-keys":{}})"),
                                 std::string(R"({"issuer-request-uri":"/","token-keys":[1]})"),
                                 one_key(type + key, R"("issuer-request-uri":"/",)"),
                                 one_key(type + key, R"("token-keys":[],)"),
                                 one_key(type + type + key),
                                 one_key(type + key + "," + key),
                                 one_key(key),
                                 one_key(R"("token-type":"2",)" + key),
                                 one_key(R"("token-type":2.0,)" + key),
                                 one_key(R"("token-type":-2,)" + key),
                                 one_key(R"("token-type":2)"),
                                 one_key(type + R"("token-key":7)"),
                                 one_key(type + R"("token-key":"AAAA")"),
                                 one_key(type + R"("token-key":"+AAA")"),
                                 one_key(type + key + R"(,"not-before":-1)"),
                                 one_key(type + key + R"(,"not-before":1.5)"),
                                 one_key(type + key + R"(,"not-before":"1")"),
                                 one_key(type + key + R"(,"not-before":1,"not-before":2)"),
                                 one_key(type + key + R"(,"lethe-buyers":-1)"),
                                 one_key(type + key + R"(,"lethe-buyers":"1")"),
                                 one_key(type + key + R"(,"lethe-buyers":1,"lethe-buyers":1)"),
                                 one_key(type + key + "},{" + type + key),
                                 one_key(type + key) + "x"})
    EXPECT_FALSE(read_directory(bad)) << bad;
  const std::string good = one_key(type + key + R"(,"not-before":5)");
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(read_directory(std::string_view(good).substr(0, size))) << size;
}

TEST(TokenDirectory, HasLimits) {
  auto with_keys = [](size_t count) {
    std::string text = R"({"issuer-request-uri":"/","token-keys":[)";
    for (size_t i = 0; i < count; ++i) text += std::string(i ? "," : "") + R"({"token-type":1})";
    return text + "]}";
  };
  EXPECT_TRUE(read_directory(with_keys(limits::token_directory_keys_max)));
  EXPECT_FALSE(read_directory(with_keys(limits::token_directory_keys_max + 1)));
  std::string large = with_keys(1);
  large.resize(limits::token_directory_bytes_max, ' ');
  EXPECT_TRUE(read_directory(large));
  EXPECT_FALSE(read_directory(large + ' '));
  auto with_uri = [](size_t size) {
    return R"({"issuer-request-uri":")" + std::string(size, 'u') + R"(","token-keys":[]})";
  };
  EXPECT_TRUE(read_directory(with_uri(limits::token_uri_bytes_max)));
  EXPECT_FALSE(read_directory(with_uri(limits::token_uri_bytes_max + 1)));
}

}  // namespace
}  // namespace lethe

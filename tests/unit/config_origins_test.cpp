// Which web pages a file may let in.
#include "runtime/config/origin_text.hpp"
#include "tests/unit/config_read.hpp"

namespace lethe {
namespace {

using namespace testing;

std::string relay_file(const std::string& origins) {
  return "[relay]\nlisten = \"127.0.0.1:0\"\ngateway = \"http://127.0.0.1:1/\"\norigins = [" +
         origins + "]\n";
}
std::string issuer_file(const std::string& origins) {
  return "[issuer]\nlisten = \"127.0.0.1:0\"\nfolder = \"i\"\norigins = [" + origins + "]\n";
}

TEST(Origins, AreExactlyWhatABrowserSays) {
  for (const char* good :
       {"https://chat.example", "https://chat.example:8443", "https://192.0.2.1", "https://[::1]:1",
        "http://localhost", "http://localhost:65535", "http://127.0.0.1:8080", "http://[::1]:1"})
    EXPECT_TRUE(check_origin(good)) << good;
  for (const char* bad : {"",
                          "*",
                          "null",
                          "chat.example",
                          "https://",
                          "https://chat.example/",
                          "https://a/b",
                          "https://Chat.example",
                          "HTTPS://chat.example",
                          "https://chat.example:443",
                          "http://localhost:80",
                          "https://a:0",
                          "https://a:080",
                          "https://a:",
                          "https://a:65536",
                          "https://a:1x",
                          "https://*.example",
                          "https://me@a",
                          "https://a b",
                          "https://a\r\n",
                          "ftp://a",
                          "https://[::1",
                          "https://[::2]"})
    EXPECT_FALSE(check_origin(bad)) << bad;
  EXPECT_TRUE(check_origin("https://" + std::string(253, 'a')));
  EXPECT_FALSE(check_origin("https://" + std::string(254, 'a')));
}

TEST(Origins, AreRefusedWithLineAndReason) {
  const auto line = [](auto file) {
    return problems(check(file("\"https://a\", \"http://localhost:1\"")));
  };
  EXPECT_EQ(line(relay_file), "");
  EXPECT_EQ(line(issuer_file), "");
  refuses(relay_file("\"*\""), {"relay.origins[0]: allows every page"});
  refuses(issuer_file("\"https://a\", \"a\""), {"issuer.origins[1]: is no origin"});
  refuses(relay_file("\"http://chat.example\""), {"relay.origins[0]: is plain http"});
  refuses(issuer_file("\"https://a\", \"https://a\""), {"issuer.origins[1]: is there before"});
  refuses(relay_file("1"), {"relay.origins"});
}

TEST(OpenWays, ArePlainHttpToAnotherMachine) {
  for (const char* open :
       {"http://issuer.example", "http://issuer.example:80/a", "http://192.0.2.1:8100",
        "http://[2001:db8::1]:1/", "http://localhost.example", "http://127.0.0.1.example:1",
        "http://me@127.0.0.1.example", "http://127.0.0.1@issuer.example", "http://"})
    EXPECT_TRUE(is_open_way(open)) << open;
  for (const char* closed : {"https://issuer.example", "http://localhost", "http://localhost:1/a",
                             "http://127.0.0.1:8100", "http://127.1.2.3/", "http://[::1]:1", ""})
    EXPECT_FALSE(is_open_way(closed)) << closed;
}

TEST(OpenWays, AreRefusedWhereSecretsAreSent) {
  const auto gateway = [](const std::string& issuer) {
    return "[gateway]\nlisten = \"127.0.0.1:0\"\nfolder = \"g\"\nissuer_secret = \"s\"\nissuer = "
           "\"" +
           issuer + "\"\n";
  };
  refuses(gateway("http://issuer.example:8100"), {"gateway.issuer: is plain http to another"});
  for (const char* good : {"https://issuer.example", "http://127.0.0.1:8100"})
    EXPECT_EQ(problems(check(gateway(good))).find("gateway.issuer: "), std::string::npos) << good;
  const auto issuer = [](const std::string& more) { return "[issuer]\nfolder = \"i\"\n" + more; };
  const std::string keys = "certificate = \"c\"\nkey = \"k\"\n";
  refuses(issuer("listen = \"0.0.0.0:8100\"\n"), {"issuer.listen: is not on loopback"});
  EXPECT_EQ(problems(check(issuer("listen = \"0.0.0.0:8100\"\n" + keys))), "");
  EXPECT_EQ(problems(check(issuer("listen = \"127.0.0.1:8100\"\n"))), "");
}

TEST(Origins, AreSixteenAtMost) {
  std::string all;
  for (int i = 0; i < 16; ++i) all += "\"https://a" + std::to_string(i) + "\",";
  EXPECT_EQ(problems(check(relay_file(all))), "");
  refuses(relay_file(all + "\"https://b\""), {"relay.origins", "16"});
}

}  // namespace
}  // namespace lethe

// Web pages before a relay: who may read its answers, and that a gateway can't tell them apart.

#include "runtime/relay/relay.hpp"

#include "tests/unit/http_peers.hpp"

namespace lethe {
namespace {

using namespace http_test;

const std::string page = "https://chat.example";

std::unique_ptr<relay> relay_to(const std::string& gateway, std::vector<std::string> origins) {
  auto r = relay::start({.listen = {{"relay", "127.0.0.1:0"}},
                         .gateway = read_url("http://" + gateway)->first,
                         .origins = web_origins(std::move(origins))});
  EXPECT_TRUE(r) << r.why().text;
  return *std::move(r);
}
client client_of(const relay& r) { return client(r.bound()[0].address); }

std::string of(const std::string& origin) { return "Origin: " + origin + "\r\n"; }
std::string preflight(const std::string& origin, const std::string& method = "POST",
                      const std::string& path = "/") {
  return "OPTIONS " + path + " HTTP/1.1\r\nHost: r\r\n" + of(origin) +
         "Access-Control-Request-Method: " + method +
         "\r\nAccess-Control-Request-Headers: content-type,incremental\r\n\r\n";
}
std::string ask(const std::string& more, const std::string& type = "message/ohttp-req") {
  return "POST / HTTP/1.1\r\nHost: r\r\n" + more + "Content-Type: " + type +
         "\r\nContent-Length: 6\r\n\r\nsealed";
}
std::string access_of(const reply& r) {
  std::string all;
  for (auto name : {"Vary", "Access-Control-Allow-Origin", "Access-Control-Allow-Methods",
                    "Access-Control-Allow-Headers", "Access-Control-Allow-Credentials",
                    "Access-Control-Expose-Headers"})
    if (auto value = r.field(name); !value.empty()) all += value + "|";
  return all;
}

/// Answers everything, and tells of itself what pages must not hear from the relay.
std::unique_ptr<http_server> open_gateway(program& p) { return serve(p); }
void answer(http_server& s, http_request& r) {
  s.answer(r.id,
           {.content_type = "message/ohttp-res",
            .fields = {{"Access-Control-Allow-Origin", "*"},
                       {"Access-Control-Allow-Credentials", "true"}}},
           "answer");
}

class RelayOrigins : public ::testing::Test {
 protected:
  program gateway_{answer};
  std::unique_ptr<http_server> serves_ = open_gateway(gateway_);
  std::unique_ptr<relay> relay_ = relay_to(serves_->bound()[0].address, {"https://other", page});
  reply say(const std::string& text) { return client_of(*relay_).ask(text); }
};

TEST_F(RelayOrigins, APageThatIsAllowedMayAskAndReadTheAnswer) {
  auto may = say(preflight(page));
  EXPECT_EQ(may.status, 204);
  EXPECT_EQ(access_of(may), "Origin|" + page + "|POST|content-type, incremental|");
  EXPECT_EQ(may.field("Access-Control-Max-Age"), "7200");
  EXPECT_EQ(gateway_.arrivals(), 0u) << "a preflight goes no further";
  EXPECT_EQ(relay_->numbers().refused, 0u);
  auto got = say(ask(of(page)));
  EXPECT_EQ(got.body, "answer");
  EXPECT_EQ(access_of(got), "Origin|" + page + "|");
  auto keys = say("GET /.well-known/ohttp-gateway HTTP/1.1\r\nHost: r\r\n" + of(page) + "\r\n");
  EXPECT_EQ(access_of(keys), "Origin|" + page + "|");
}

TEST_F(RelayOrigins, APageThatIsAllowedReadsRefusals) {
  EXPECT_EQ(access_of(say(ask(of(page), "text/plain"))), "Origin|" + page + "|");
  serves_.reset();
  auto got = say(ask(of(page)));
  EXPECT_EQ(got.status, 502);
  EXPECT_EQ(access_of(got), "Origin|" + page + "|");
}

TEST_F(RelayOrigins, OtherPagesMayNot) {
  for (std::string origin :
       {"https://chat.example:8443", "https://chat.exampl", "https://chat.example/", "null",
        "https://CHAT.example", "http://chat.example", "*", "",
        "https://chat.example https://other"}) {
    auto may = say(preflight(origin));
    EXPECT_EQ(may.status, 405) << origin;
    EXPECT_EQ(access_of(may), "Origin|") << origin;
    EXPECT_EQ(access_of(say(ask(of(origin)))), "Origin|") << origin;
  }
  EXPECT_EQ(say(preflight(page, "PUT")).status, 405);
  EXPECT_EQ(say(preflight(page, "POST", "/x")).status, 404);
  EXPECT_EQ(say(preflight(page, "POST", "/?me")).status, 404);
  EXPECT_EQ(access_of(say(ask(""))), "Origin|") << "what has no origin is asked by no page";
}

TEST_F(RelayOrigins, WithoutOriginsAnAnswerIsWhatItAlwaysWas) {
  relay_ = relay_to(serves_->bound()[0].address, {});
  EXPECT_EQ(say(preflight(page)).status, 405);
  EXPECT_EQ(access_of(say(preflight(page))), "");
  EXPECT_EQ(access_of(say(ask(of(page)))), "");
}

/// Takes one request, byte by byte.
class bare_gateway {
 public:
  bare_gateway() {
    sockaddr_in at{.sin_family = AF_INET};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&at), size), 0);
    EXPECT_EQ(::listen(fd_, 4), 0);
    ::getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &size);
    address_ = "127.0.0.1:" + std::to_string(ntohs(at.sin_port));
  }
  ~bare_gateway() { ::close(fd_); }
  const std::string& address() const { return address_; }
  std::string take() {
    int peer = ::accept(fd_, nullptr, nullptr);
    std::string all;
    char some[4096];
    for (ssize_t n; !all.ends_with("\r\n0\r\n\r\n") && (n = ::read(peer, some, sizeof some)) > 0;)
      all.append(some, size_t(n));
    ::close(peer);
    return all;
  }

 private:
  int fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::string address_;
};

TEST(RelayPages, AGatewaySeesTheSameBytesOfTwoBrowsers) {
  bare_gateway g;
  auto r = relay_to(g.address(), {page, "https://other"});
  const std::string browsers[] = {
      of(page) +
          "Referer: https://chat.example/me\r\nUser-Agent: Chrome\r\nCookie: a=1\r\n"
          "Accept-Language: de\r\nSec-Fetch-Site: cross-site\r\nAccept: */*\r\n",
      of("https://other") + "User-Agent: Firefox\r\nAccept-Language: en-GB\r\nDNT: 1\r\n", ""};
  std::vector<std::string> seen;
  for (const auto& b : browsers) {
    auto c = client_of(*r);
    ASSERT_TRUE(c.send(ask(b)));
    seen.push_back(g.take());
  }
  EXPECT_NE(seen[0].find("sealed"), std::string::npos) << "the test would find what came along";
  for (auto word : {"chat.example", "Origin", "Referer", "User-Agent", "Cookie", "Accept", "Sec-"})
    EXPECT_EQ(seen[0].find(word), std::string::npos) << word;
  EXPECT_EQ(seen[0], seen[1]);
  EXPECT_EQ(seen[0], seen[2]);
}

}  // namespace
}  // namespace lethe

// What a relay passes on, what it keeps to itself, and that it holds nothing back.

#include "runtime/relay/relay.hpp"

#include "tests/unit/http_peers.hpp"

namespace lethe {
namespace {

using namespace http_test;

constexpr const char* asks = "Content-Type: message/ohttp-chunked-req\r\n";

/// A gateway that takes bodies in pieces and does what the test says.
class gateway final : public http_handler {
 public:
  gateway() {
    http_listener where[] = {{"gateway", "127.0.0.1:0", {}, size_t{64} << 10}};
    auto s = http_server::start(where, {}, *this);
    EXPECT_TRUE(s) << s.why().text;
    server = *std::move(s);
  }
  void arrived(http_server&, http_request r) override {
    note([&] {
      id = r.id;
      line = std::string(r.head.method) + " " + std::string(r.head.path);
      fields.clear();
      for (const auto& f : r.head.fields) fields[std::string(f.name)] = f.value;
      body.clear();
      ended = false;
      ++arrivals;
    });
  }
  void came(uint64_t of, std::string_view piece) override {
    note([&] { body += piece; });
    if (takes) server->took(of, piece.size());
  }
  void whole(uint64_t) override {
    note([&] { ended = true; });
  }
  void left(uint64_t) override {
    note([&] { ++lefts; });
  }
  void drained(uint64_t, size_t bytes) override {
    note([&] { out += bytes; });
  }
  void sent(uint64_t) override {}
  template <class Condition>
  bool wait(Condition holds, std::chrono::milliseconds most = patience) {
    std::unique_lock guard(lock_);
    return changed_.wait_for(guard, most, holds);
  }

  std::atomic<bool> takes{true};
  uint64_t id = 0;
  std::string line, body;
  std::map<std::string, std::string> fields;
  bool ended = false;
  int arrivals = 0, lefts = 0;
  size_t out = 0;

 private:
  template <class F>
  void note(F f) {
    {
      std::lock_guard guard(lock_);
      f();
    }
    changed_.notify_all();
  }
  std::mutex lock_;
  std::condition_variable changed_;

 public:
  std::unique_ptr<http_server> server;  // last: its thread ends before what it tells
};

std::unique_ptr<relay> relay_to(const std::string& address, relay_config c = {}) {
  c.listen = {{"relay", "127.0.0.1:0"}};
  c.gateway = read_url("http://" + address)->first;
  c.gateway_path = "/ohttp";
  auto r = relay::start(c);
  EXPECT_TRUE(r) << r.why().text;
  return *std::move(r);
}
std::unique_ptr<relay> relay_to(const gateway& g, relay_config c = {}) {
  return relay_to(g.server->bound()[0].address, std::move(c));
}
client client_of(const relay& r) { return client(r.bound()[0].address); }

std::string ask(const std::string& body, const std::string& more = asks) {
  return "POST / HTTP/1.1\r\nHost: relay\r\n" + more +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

TEST(Relay, PassesOnWhatIsSealedAndNothingOfWhoSentIt) {
  gateway g;
  auto r = relay_to(g);
  auto c = client_of(*r);
  ASSERT_TRUE(c.send(ask("sealed", std::string(asks) +
                                       "Incremental: ?1\r\nCookie: me\r\nUser-Agent: mine\r\n"
                                       "Authorization: Bearer me\r\nX-Forwarded-For: 192.0.2.1\r\n"
                                       "Forwarded: for=192.0.2.1\r\nAccept-Language: de\r\n")));
  ASSERT_TRUE(g.wait([&] { return g.ended; }));
  EXPECT_EQ(g.line, "POST /ohttp");
  EXPECT_EQ(g.body, "sealed");
  std::map<std::string, std::string> want{{"Host", g.server->bound()[0].address},
                                          {"Content-Type", "message/ohttp-chunked-req"},
                                          {"Incremental", "?1"},
                                          {"Transfer-Encoding", "chunked"}};
  EXPECT_EQ(g.fields, want);
  g.server->begin(g.id, {.content_type = "message/ohttp-chunked-res",
                         .fields = {{"Incremental", "?1"}, {"Set-Cookie", "x"}, {"Server", "y"}}});
  g.server->write(g.id, "answer");
  g.server->end(g.id);
  auto got = c.take_reply();
  EXPECT_EQ(got.status, 200);
  EXPECT_EQ(got.body, "answer");
  EXPECT_EQ(got.field("Content-Type"), "message/ohttp-chunked-res");
  EXPECT_EQ(got.field("Incremental"), "?1");
  EXPECT_EQ(got.field("Set-Cookie") + got.field("Server"), "");
}

TEST(Relay, KeepsConnectionsAndCountsWithoutKeeping) {
  gateway g;
  auto r = relay_to(g);
  auto c = client_of(*r);
  for (int i = 1; i <= 3; ++i) {
    ASSERT_TRUE(c.send(ask("n")));
    ASSERT_TRUE(g.wait([&] { return g.arrivals == i && g.ended; }));
    g.server->answer(g.id, {.status = 400, .content_type = "application/problem+json"}, "{}");
    auto got = c.take_reply();
    EXPECT_EQ(got.status, 400);
    EXPECT_EQ(got.field("Content-Type"), "application/problem+json");
    EXPECT_EQ(got.body, "{}");
  }
  EXPECT_EQ(g.server->numbers().accepted, 1u);
  EXPECT_EQ(r->numbers().exchanges, 3u);
  EXPECT_TRUE(eventually([&] { return r->numbers().open == 0; }));
  EXPECT_EQ(r->numbers().failed, 0u);
}

TEST(Relay, HoldsNothingBackEitherWay) {
  gateway g;
  auto r = relay_to(g);
  auto c = client_of(*r);
  ASSERT_TRUE(c.send("POST / HTTP/1.1\r\nHost: r\r\n" + std::string(asks) +
                     "Transfer-Encoding: chunked\r\n\r\n"));
  std::string all;
  for (auto piece : {"one", "two", "three"}) {
    ASSERT_TRUE(c.send(chunk(piece)));
    all += piece;
    ASSERT_TRUE(g.wait([&] { return g.body == all; })) << "before the next is sent";
  }
  EXPECT_FALSE(g.ended);
  ASSERT_TRUE(c.send("0\r\n\r\n"));
  ASSERT_TRUE(g.wait([&] { return g.ended; }));
  g.server->begin(g.id, {});
  EXPECT_EQ(c.take_head().status, 200) << "before the first piece is written";
  for (std::string piece : {"four", "five", "six"}) {
    g.server->write(g.id, piece);
    EXPECT_EQ(c.take_chunk(), piece) << "before the next is written";
  }
  g.server->end(g.id);
  EXPECT_EQ(c.take_chunk(), "");
}

TEST(Relay, BuffersNoMoreThanItsWindows) {
  gateway g;
  g.takes = false;
  constexpr size_t body = size_t{64} << 20;
  auto r = relay_to(g, {.request_bytes_max = body});
  auto c = client_of(*r);
  timeval soon{.tv_sec = 0, .tv_usec = 300'000};
  setsockopt(c.fd(), SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof soon);
  ASSERT_TRUE(c.send("POST / HTTP/1.1\r\nHost: r\r\n" + std::string(asks) +
                     "Content-Length: " + std::to_string(body) + "\r\n\r\n"));
  std::string piece(1 << 20, 'p');
  size_t sent = 0;
  for (ssize_t n;
       sent < body && (n = ::send(c.fd(), piece.data(), piece.size(), MSG_NOSIGNAL)) > 0;)
    sent += size_t(n);
  EXPECT_LT(sent, body / 2) << "the kernel's buffers and two windows, no more";
  uint64_t id = 0;
  size_t had = 0;
  ASSERT_TRUE(g.wait([&] { return id = g.id, had = g.body.size(), true; }));
  EXPECT_LE(had, (size_t{64} << 10) + (16 << 10));
  c.close();
  g.takes = true;
  g.server->took(id, had);
  EXPECT_TRUE(g.wait([&] { return g.lefts == 1; })) << "the gateway hears that the client has left";

  // The other way: what the client does not read, the gateway can't write.
  auto slow = client(r->bound()[0].address, 4096);
  ASSERT_TRUE(slow.send(ask("x")));
  ASSERT_TRUE(g.wait([&] { return g.arrivals == 2 && g.ended; }));
  g.server->begin(g.id, {});
  size_t written = 0;
  while (written < body / 2) {
    g.server->write(g.id, piece);
    written += piece.size();
    if (!g.wait([&] { return g.out >= written; }, 300ms)) break;
  }
  EXPECT_LT(written, body / 2);
}

TEST(Relay, RefusesWhatNoRelayPassesOn) {
  gateway g;
  auto r = relay_to(g, {.request_bytes_max = 1000});
  auto c = [&](const std::string& text) { return client_of(*r).ask(text); };
  EXPECT_EQ(c("GET / HTTP/1.1\r\nHost: r\r\n\r\n").status, 405);
  EXPECT_EQ(c("POST /x HTTP/1.1\r\nHost: r\r\nContent-Length: 0\r\n\r\n").status, 404);
  EXPECT_EQ(
      c("POST /?u=me HTTP/1.1\r\nHost: r\r\n" + std::string(asks) + "Content-Length: 0\r\n\r\n")
          .status,
      404);
  EXPECT_EQ(c(ask("x", "Content-Type: application/json\r\n")).status, 415);
  EXPECT_EQ(c(ask("x", "")).status, 415);
  EXPECT_EQ(c("GET /.well-known/ohttp-gateway?me HTTP/1.1\r\nHost: r\r\n\r\n").status, 404);
  EXPECT_EQ(c(ask(std::string(1001, 'x'))).status, 413);
  EXPECT_EQ(r->numbers().refused, 6u);
  EXPECT_EQ(g.arrivals, 0);
  auto last = client_of(*r);
  ASSERT_TRUE(last.send(ask(std::string(1000, 'x'))));
  EXPECT_TRUE(g.wait([&] { return g.ended && g.body.size() == 1000; }));
}

TEST(Relay, FetchesTheGatewaysKeysWithoutSayingForWhom) {
  gateway g;
  auto r = relay_to(g);
  auto c = client_of(*r);
  ASSERT_TRUE(c.send("GET /.well-known/ohttp-gateway HTTP/1.1\r\nHost: r\r\nCookie: me\r\n\r\n"));
  ASSERT_TRUE(g.wait([&] { return g.arrivals == 1; }));
  EXPECT_EQ(g.line, "GET /.well-known/ohttp-gateway");
  EXPECT_EQ(g.fields.size(), 1u);
  g.server->answer(
      g.id, {.content_type = "application/ohttp-keys", .fields = {{"Cache-Control", "max-age=60"}}},
      "keys");
  auto got = c.take_reply();
  EXPECT_EQ(got.body, "keys");
  EXPECT_EQ(got.field("Cache-Control"), "max-age=60");
}

TEST(Relay, AGatewayThatFailsIsNoEndOfAnAnswer) {
  std::string address;
  {
    gateway g;
    address = g.server->bound()[0].address;
    auto r = relay_to(g);
    auto c = client_of(*r);
    ASSERT_TRUE(c.send(ask("x")));
    ASSERT_TRUE(g.wait([&] { return g.ended; }));
    g.server->begin(g.id, {});
    g.server->write(g.id, "half of ");
    EXPECT_EQ(c.take_head().status, 200);
    EXPECT_EQ(c.take_chunk(), "half of ");
    g.server.reset();
    EXPECT_EQ(c.take_all(), "") << "a last chunk would say that this was all";
    EXPECT_EQ(r->numbers().failed, 1u);
  }
  auto r = relay_to(address);
  auto got = client_of(*r).ask(ask("x"));
  EXPECT_EQ(got.status, 502);
  EXPECT_EQ(r->numbers().failed, 1u);
}

TEST(Relay, EndsWithExchangesInFlight) {
  gateway g;
  auto r = relay_to(g);
  auto c = client_of(*r);
  ASSERT_TRUE(c.send(ask("x")));
  ASSERT_TRUE(g.wait([&] { return g.ended; }));
  r.reset();
  EXPECT_TRUE(c.closed_now());
  EXPECT_TRUE(g.wait([&] { return g.lefts == 1; }));
}

}  // namespace
}  // namespace lethe

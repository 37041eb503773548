// What a caller may rely on: whole answers or one clear reason, connections kept, limits kept, and
// nobody behind TLS who is not who the caller named.

#include <filesystem>
#include <fstream>

#include "runtime/crypto/certificate.hpp"
#include "runtime/http/http_client.hpp"
#include "tests/unit/http_peers.hpp"

namespace lethe {
namespace {

using namespace http_test;

std::unique_ptr<http_client> client_with(http_client_limits limits = {}, http_trust trust = {}) {
  auto c = http_client::start(limits, trust);
  if (!c) ADD_FAILURE() << c.why().text;
  return c ? *std::move(c) : nullptr;
}

http_origin origin_of(const std::string& address, bool tls = false) {
  auto read = read_url((tls ? "https://" : "http://") + address);
  EXPECT_TRUE(read) << read.why().text;
  return read->first;
}
http_origin origin_of(const http_server& s) { return origin_of(s.bound()[0].address); }

http_call get_from(http_origin to, const std::string& path = "/") {
  return {.to = std::move(to), .path = path};
}

/// Remembers what it was told; takes pieces unless told to wait.
class caller final : public http_call_watcher {
 public:
  void began(uint64_t, const http_reply& h) override {
    note([&] { head = h; });
  }
  void came(uint64_t call, std::string_view piece) override {
    note([&] { body += piece; });
    if (taker) taker->took(call, piece.size());
  }
  void ended(uint64_t, const result<void>& how) override {
    note([&] { ++ends, why = how ? "" : how.why().text; });
  }
  template <class Condition>
  bool wait(Condition holds) {
    std::unique_lock guard(lock_);
    return changed_.wait_for(guard, patience, holds);
  }
  bool wait_end() {
    return wait([&] { return ends > 0; });
  }
  size_t has() {
    std::lock_guard guard(lock_);
    return body.size();
  }

  http_client* taker = nullptr;
  http_reply head;
  std::string body, why;
  int ends = 0;

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
};

/// A server that says what it is told to, whatever it is asked, and then closes, or waits.
class reciter {
 public:
  explicit reciter(std::string says, bool closes = true) {
    fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{.sin_family = AF_INET};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
    EXPECT_EQ(listen(fd_, 8), 0);
    socklen_t size = sizeof at;
    getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &size);
    address = "127.0.0.1:" + std::to_string(ntohs(at.sin_port));
    thread_ = std::thread([this, says = std::move(says), closes] { run(says, closes); });
  }
  ~reciter() {
    shutdown(fd_, SHUT_RDWR);
    if (int open = open_.exchange(-1); open >= 0) shutdown(open, SHUT_RDWR);
    thread_.join();
    ::close(fd_);
  }
  std::string address;
  std::atomic<int> calls{0};

 private:
  void run(const std::string& says, bool closes) {
    for (int c; (c = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0; ::close(c)) {
      open_ = c;
      std::string asked;
      char bytes[4096];
      ssize_t n = 1;
      while (asked.find("\r\n\r\n") == asked.npos && (n = recv(c, bytes, sizeof bytes, 0)) > 0)
        asked.append(bytes, size_t(n));
      ++calls;
      for (size_t sent = 0; n > 0 && sent < says.size();) {
        n = send(c, says.data() + sent, says.size() - sent, MSG_NOSIGNAL);
        if (n > 0) sent += size_t(n);
      }
      while (!closes && recv(c, bytes, sizeof bytes, 0) > 0) {
      }
      open_ = -1;
    }
  }
  int fd_;
  std::atomic<int> open_{-1};
  std::thread thread_;
};

TEST(HttpClient, AsksAgainOnTheSameConnection) {
  program p(echo);
  auto s = serve(p);
  auto c = client_with();
  for (int i = 0; i < 5; ++i) {
    auto r = ask_whole(*c, {.to = origin_of(*s),
                            .method = "POST",
                            .path = "/p?n=" + std::to_string(i),
                            .fields = {{"X-Any", "thing"}},
                            .body = "body"});
    ASSERT_TRUE(r) << r.why().text;
    EXPECT_EQ(r->head.status, 200);
    EXPECT_EQ(r->head.field("CONTENT-type"), "text/plain");
    EXPECT_EQ(r->body, "POST /p?n=" + std::to_string(i) + " body");
  }
  EXPECT_EQ(s->numbers().accepted, 1u);
  EXPECT_TRUE(eventually([&] { return s->numbers().requests == 5; }));
}

TEST(HttpClient, BodiesOfEverySizeArriveWithALengthAndInChunks) {
  std::string seen;
  program p([&](http_server& s, http_request& r) {
    seen = std::string(r.body);
    s.answer(r.id, {}, r.head.chunked ? "chunks" : "length");
  });
  auto s = serve(p);
  auto c = client_with();
  for (size_t bytes : {0, 1, 16383, 16384, 16385, 300'000})
    for (bool chunked : {false, true}) {
      std::string body(bytes, 'b');
      for (size_t i = 0; i < bytes; i += 97) body[i] = char('a' + i % 26);
      auto r =
          ask_whole(*c, {.to = origin_of(*s), .method = "POST", .body = body, .chunked = chunked});
      ASSERT_TRUE(r) << r.why().text;
      EXPECT_EQ(seen, body);
      EXPECT_EQ(r->body, chunked ? "chunks" : "length");
    }
}

TEST(HttpClient, PiecesComeAsTheyAreWritten) {
  program p;
  auto s = serve(p);
  auto c = client_with();
  auto who = std::make_shared<caller>();
  who->taker = c.get();
  c->ask(get_from(origin_of(*s)), who);
  uint64_t id = p.wait_arrived();
  s->begin(id, {});
  std::string all;
  for (auto piece : {"one ", "two ", "three"}) {
    s->write(id, piece);
    all += piece;
    ASSERT_TRUE(who->wait([&] { return who->body == all; }));  // before the next is written
  }
  EXPECT_EQ(who->ends, 0);
  s->end(id);
  ASSERT_TRUE(who->wait_end());
  EXPECT_EQ(who->why, "");
}

TEST(HttpClient, ReadsNoFurtherThanItsWindow) {
  constexpr size_t window = 100'000, body = 8'000'000;
  reciter r("HTTP/1.1 200 OK\r\nContent-Length: 8000000\r\n\r\n" + std::string(body, 'x'));
  auto c = client_with({.window_bytes = window});
  auto who = std::make_shared<caller>();
  uint64_t call = c->ask(get_from(origin_of(r.address)), who);
  ASSERT_TRUE(who->wait([&] { return who->body.size() >= window; }));
  std::this_thread::sleep_for(50ms);
  EXPECT_LT(who->has(), window + (16u << 10));  // one read may go over
  for (size_t taken = 0; taken < body;) {
    size_t more = who->has() - taken;
    c->took(call, more);
    taken += more;
    ASSERT_TRUE(who->wait([&] { return who->body.size() > taken || who->ends > 0; }));
    if (who->ends > 0) break;
  }
  ASSERT_TRUE(who->wait_end());
  EXPECT_EQ(who->why, "");
  EXPECT_EQ(who->body.size(), body);
}

// Credit goes back a quarter of a window at a time: what is left untold never keeps it shut.
TEST(HttpClient, GoesOnWhenItsWindowIsTakenBitByBit) {
  for (size_t window : {1u, 3u, 1000u, 4096u}) {
    SCOPED_TRACE(window);
    const std::string body(50'000, 'x');
    reciter r("HTTP/1.1 200 OK\r\nContent-Length: 50000\r\n\r\n" + body);
    auto c = client_with({.window_bytes = window});
    auto who = std::make_shared<caller>();
    uint64_t call = c->ask(get_from(origin_of(r.address)), who);
    for (size_t taken = 0; taken < body.size(); ++taken) {
      ASSERT_TRUE(who->wait([&] { return who->body.size() > taken; })) << taken;
      c->took(call, 1);
    }
    ASSERT_TRUE(who->wait_end());
    EXPECT_EQ(who->why, "");
    c->took(call, 1);  // what comes late is nobody's
  }
}

TEST(HttpClient, AnswersWithoutABodyEndWithTheirHead) {
  auto c = client_with();
  for (auto [method, says] :
       {std::pair("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n"),
        std::pair("GET", "HTTP/1.1 204 No Content\r\n\r\n"),
        std::pair("GET", "HTTP/1.1 304\r\nContent-Length: 5\r\n\r\n"),
        std::pair("GET",
                  "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\n"
                  "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")}) {
    reciter r(says, false);
    auto got = ask_whole(*c, {.to = origin_of(r.address), .method = method});
    ASSERT_TRUE(got) << says << got.why().text;
    EXPECT_EQ(got->body, "");
  }
}

TEST(HttpClient, AnAnswerMayEndWithItsConnection) {
  reciter r("HTTP/1.0 200 OK\r\n\r\nall of it");
  auto c = client_with();
  auto got = ask_whole(*c, get_from(origin_of(r.address)));
  ASSERT_TRUE(got) << got.why().text;
  EXPECT_EQ(got->body, "all of it");
}

TEST(HttpClient, AnAnswerThatIsCutAtAnyByteIsNone) {
  auto c = client_with();
  for (const std::string text :
       {"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\nbody",
        "HTTP/1.1 100\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        "2\r\nbo\r\n2;x=y\r\ndy\r\n0\r\nT: r\r\n\r\n"}) {
    for (size_t bytes = 0; bytes < text.size(); ++bytes) {
      reciter r(text.substr(0, bytes));
      auto got = ask_whole(*c, get_from(origin_of(r.address)));
      EXPECT_FALSE(got) << bytes;
    }
    reciter r(text);
    auto got = ask_whole(*c, get_from(origin_of(r.address)));
    ASSERT_TRUE(got) << got.why().text;
    EXPECT_EQ(got->body, "body");
  }
}

TEST(HttpClient, AHeadThatIsCutAtAnyByteIsNone) {
  const std::string head =
      "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\n";
  for (size_t bytes = 0; bytes < head.size(); ++bytes)
    EXPECT_FALSE(read_reply(head.substr(0, bytes), false, 8)) << bytes;
  EXPECT_TRUE(read_reply(head, false, 8));
}

TEST(HttpClient, WhatIsNoAnswerIsRefusedWithAReason) {
  std::string ok = "HTTP/1.1 200 OK\r\n";
  std::string fields;
  for (int i = 0; i < 101; ++i) fields += "A: b\r\n";
  struct {
    std::string says, why;
  } cases[] = {
      {"", "did not answer"},
      {"HTTP/1.1 20", "did not answer"},
      {"HTTP/2 200 OK\r\n\r\n", "first line"},
      {"HTTP/1.1 600 OK\r\n\r\n", "first line"},
      {"HTTP/1.1 20 OK\r\n\r\n", "first line"},
      {ok + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nfives", "said twice"},
      {ok + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "said twice"},
      {ok + "Transfer-Encoding: gzip, chunked\r\n\r\n", "transfer coding"},
      {ok + "Content-Length: -1\r\n\r\n", "its length"},
      {ok + "Content-Length: 9999999999999999999\r\n\r\n", "its length"},
      {ok + "Bad Name: x\r\n\r\n", "a field"},
      {ok + "NoColon\r\n\r\n", "colon"},
      {ok + "A: b\n\r\n", "not well-formed"},
      {ok + fields + "\r\n", "too many fields"},
      {ok + "A: " + std::string(17'000, 'a') + "\r\n\r\n", "too long"},
      {ok + "Content-Length: 5\r\n\r\nfour", "cut off"},
      {ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nfive", "cut off"},
      {ok + "Transfer-Encoding: chunked\r\n\r\n4\r\nfour\r\n", "cut off"},
      {ok + "Transfer-Encoding: chunked\r\n\r\nx\r\n", "a chunk"},
      {"HTTP/1.1 101 Switching Protocols\r\n\r\n", "another protocol"},
  };
  auto c = client_with();
  for (const auto& k : cases) {
    reciter r(k.says);
    auto got = ask_whole(*c, get_from(origin_of(r.address)));
    ASSERT_FALSE(got) << k.says;
    EXPECT_NE(got.why().text.find(k.why), std::string::npos) << k.says << "\n" << got.why().text;
    EXPECT_TRUE(got.why().text.starts_with("http://" + r.address)) << got.why().text;
    EXPECT_EQ(r.calls, 1) << "a call is never repeated";
  }
}

TEST(HttpClient, AnAnswerMayBeAsLargeAsTheLimitAndNotLarger) {
  std::string ok = "HTTP/1.1 200 OK\r\n";
  auto c = client_with({.body_bytes_max = 1000});
  for (size_t bytes : {999, 1000, 1001}) {
    std::string body(bytes, 'b');
    char size[16];
    std::snprintf(size, sizeof size, "%zx", bytes);
    for (const auto& says :
         {ok + "Content-Length: " + std::to_string(bytes) + "\r\n\r\n" + body,
          ok + "Transfer-Encoding: chunked\r\n\r\n" + size + "\r\n" + body + "\r\n0\r\n\r\n",
          ok + "\r\n" + body}) {
      reciter r(says);
      auto got = ask_whole(*c, get_from(origin_of(r.address)));
      EXPECT_EQ(bool(got), bytes <= 1000);
      if (got) continue;
      EXPECT_NE(got.why().text.find("too large"), std::string::npos) << got.why().text;
    }
  }
}

TEST(HttpClient, WaitsForNothingLongerThanItIsTold) {
  auto c = client_with({.answer_ms = 100, .stall_ms = 100});
  struct {
    std::string says, why;
  } cases[] = {{"", "no answer in time"},
               {"HTTP/1.1 200 OK\r\n", "no answer in time"},
               {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nfive", "stopped"}};
  for (const auto& k : cases) {
    reciter r(k.says, false);
    auto got = ask_whole(*c, get_from(origin_of(r.address)));
    ASSERT_FALSE(got);
    EXPECT_NE(got.why().text.find(k.why), std::string::npos) << got.why().text;
  }
}

TEST(HttpClient, NobodyThereIsSaidSo) {
  std::string address;
  {
    reciter gone("");
    address = gone.address;
  }
  auto c = client_with();
  auto got = ask_whole(*c, get_from(origin_of(address)));
  ASSERT_FALSE(got);
  EXPECT_NE(got.why().text.find("no connection"), std::string::npos) << got.why().text;
  auto nowhere = ask_whole(*c, get_from(origin_of("no-such-host.invalid:80")));
  ASSERT_FALSE(nowhere);
  EXPECT_NE(nowhere.why().text.find("no connection"), std::string::npos) << nowhere.why().text;
}

TEST(HttpClient, ACancelledCallEndsOnceWhereverItIs) {
  program p;
  auto s = serve(p);
  auto c = client_with({.connections_max = 1});
  std::vector<std::pair<uint64_t, std::shared_ptr<caller>>> calls;
  for (int i = 0; i < 3; ++i) {  // one is being answered, two wait
    auto who = std::make_shared<caller>();
    calls.emplace_back(c->ask(get_from(origin_of(*s)), who), who);
  }
  uint64_t first = p.wait_arrived();
  c->cancel(calls[1].first);
  ASSERT_TRUE(calls[1].second->wait_end());
  c->cancel(calls[0].first);
  ASSERT_TRUE(calls[0].second->wait_end());
  EXPECT_TRUE(p.wait_left(first));
  uint64_t last = p.wait_arrived(2);  // on a new connection
  s->answer(last, {}, "done");
  ASSERT_TRUE(calls[2].second->wait_end());
  c->cancel(calls[2].first);  // too late to matter
  EXPECT_EQ(calls[0].second->why, "cancelled");
  EXPECT_EQ(calls[1].second->why, "cancelled");
  EXPECT_EQ(calls[2].second->why, "");
  EXPECT_EQ(p.arrivals(), 2u);
  for (const auto& [id, who] : calls) EXPECT_EQ(who->ends, 1);
}

TEST(HttpClient, OpensNoMoreConnectionsThanItMayAndLetsNoMoreCallsWait) {
  program p;
  auto s = serve(p);
  auto c = client_with({.connections_max = 2, .waiting_max = 3});
  std::vector<std::shared_ptr<caller>> calls;
  for (int i = 0; i < 6; ++i)
    c->ask(get_from(origin_of(*s)), calls.emplace_back(std::make_shared<caller>()));
  ASSERT_TRUE(calls[5]->wait_end());
  EXPECT_NE(calls[5]->why.find("3 calls wait"), std::string::npos) << calls[5]->why;
  for (size_t i = 1; i <= 5; ++i) s->answer(p.wait_arrived(i), {}, "x");
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(calls[size_t(i)]->wait_end());
    EXPECT_EQ(calls[size_t(i)]->why, "");
  }
  EXPECT_EQ(s->numbers().accepted, 2u);
}

TEST(HttpClient, AConnectionThatItsServerClosedIsNotUsedAgain) {
  program p(echo);
  auto s = serve(p, {.idle_ms = 50});
  auto c = client_with();
  for (int i = 0; i < 3; ++i) {
    auto got = ask_whole(*c, get_from(origin_of(*s)));
    ASSERT_TRUE(got) << got.why().text;
    EXPECT_TRUE(eventually([&] { return s->numbers().connections == 0; }));
  }
  EXPECT_EQ(s->numbers().accepted, 3u);
}

TEST(HttpClient, WhatHasNoFormInHttpIsNotSent) {
  program p(echo);
  auto s = serve(p);
  auto c = client_with();
  http_call bad[] = {get_from(origin_of(*s), "nowhere"),
                     get_from(origin_of(*s), "/a b"),
                     get_from(origin_of(*s), "/a\r\nB: c"),
                     {.to = origin_of(*s), .method = "GE T"},
                     {.to = origin_of(*s), .fields = {{"A", "b\r\nC: d"}}},
                     {.to = origin_of(*s), .fields = {{"A:", "b"}}}};
  for (auto& call : bad) {
    auto got = ask_whole(*c, call);
    ASSERT_FALSE(got);
    EXPECT_NE(got.why().text.find("no form in HTTP"), std::string::npos) << got.why().text;
  }
  EXPECT_EQ(s->numbers().accepted, 0u);
}

TEST(HttpClient, OpenCallsHearOfItsEnd) {
  program p;
  auto s = serve(p);
  auto c = client_with({.connections_max = 1});
  std::vector<std::shared_ptr<caller>> calls;
  for (int i = 0; i < 2; ++i)
    c->ask(get_from(origin_of(*s)), calls.emplace_back(std::make_shared<caller>()));
  p.wait_arrived();
  c.reset();
  for (const auto& who : calls) {
    EXPECT_EQ(who->ends, 1);
    EXPECT_EQ(who->why, "this client ends");
  }
}

TEST(HttpUrl, IsAnOriginAndAPath) {
  struct {
    const char *url, *origin, *path;
  } good[] = {{"https://a.example", "https://a.example:443", "/"},
              {"http://a.example/", "http://a.example:80", "/"},
              {"https://a.example:8443/b/c", "https://a.example:8443", "/b/c"},
              {"http://[::1]:80/x", "http://[::1]:80", "/x"},
              {"http://[::1]", "http://[::1]:80", "/"},
              {"http://h:65535", "http://h:65535", "/"}};
  for (const auto& g : good) {
    auto read = read_url(g.url);
    ASSERT_TRUE(read) << read.why().text;
    EXPECT_EQ(read->first.text(), g.origin);
    EXPECT_EQ(read->second, g.path);
  }
  for (auto bad : {"", "a.example", "ftp://a", "http://", "http://:80", "http://a:0",
                   "http://a:65536", "http://a:", "http://a:8x", "http://[::1", "http://[::1]x",
                   "http://u@a", "http://a/?q", "http://a/#f", "http://a b"})
    EXPECT_FALSE(read_url(bad)) << bad;
}

/// An authority and a host of it as files.
class certified {
 public:
  explicit certified(const std::string& name, uint32_t days = 1) {
    char made[] = "/tmp/lethe-tls-XXXXXX";
    folder_ = mkdtemp(made);
    auto authority = make_authority("test", 1);
    EXPECT_TRUE(authority);
    auto host = make_host(*authority, name, "127.0.0.1", days);
    EXPECT_TRUE(host);
    put("ca.crt", pem_of(authority->certificate.get()));
    put("host.crt", pem_of(host->certificate.get()));
    put("host.key", pem_of(host->key.get()));
  }
  ~certified() { std::filesystem::remove_all(folder_); }
  http_identity identity() const { return {folder_ / "host.crt", folder_ / "host.key"}; }
  http_trust trust() const { return {folder_ / "ca.crt"}; }
  void put(const char* name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
  }
  std::filesystem::path folder_;
};

result<std::unique_ptr<http_server>> serve_tls(http_handler& h, const http_identity& as,
                                               http_limits limits = {}) {
  http_listener where[] = {{"relay", "127.0.0.1:0", as}};
  return http_server::start(where, limits, h);
}

http_call secured(const http_server& s, const std::string& name) {
  auto to = origin_of(s.bound()[0].address, true);
  to.known_as = name;
  return {.to = to, .method = "POST", .path = "/p", .body = std::string(200'000, 's')};
}

TEST(HttpTls, SpeaksWithWhomItTrusts) {
  certified a("relay");
  program p(echo);
  auto s = serve_tls(p, a.identity());
  ASSERT_TRUE(s) << s.why().text;
  auto c = client_with({}, a.trust());
  for (int i = 0; i < 3; ++i) {
    auto got = ask_whole(*c, secured(**s, "relay"));
    ASSERT_TRUE(got) << got.why().text;
    EXPECT_EQ(got->body.size(), 200'009u);
  }
  EXPECT_EQ((*s)->numbers().accepted, 1u);
}

TEST(HttpTls, WithNobodyElse) {
  certified a("relay"), b("relay");
  program p(echo);
  auto s = serve_tls(p, a.identity());
  auto plain = serve(p);
  ASSERT_TRUE(s) << s.why().text;
  auto refuses = [](http_client& c, const http_call& call) {
    auto got = ask_whole(c, call);
    ASSERT_FALSE(got);
    EXPECT_NE(got.why().text.find("no connection with TLS"), std::string::npos) << got.why().text;
    EXPECT_EQ(got.why().text.find("ssss"), std::string::npos) << "content in an error";
  };
  refuses(*client_with({}, a.trust()), secured(**s, "gateway"));  // of another name
  refuses(*client_with({}, b.trust()), secured(**s, "relay"));    // of another authority
  refuses(*client_with(), secured(**s, "relay"));                 // of none that the system knows
  refuses(*client_with({}, a.trust()), secured(*plain, "relay"));
  EXPECT_EQ(p.arrivals(), 0u);
  auto got = ask_whole(*client_with({}, a.trust()), secured(**s, "relay"));  // the control
  EXPECT_TRUE(got) << got.why().text;
}

TEST(HttpTls, StrangersHurtNobody) {
  certified a("relay");
  program p(echo);
  auto s = serve_tls(p, a.identity(), {.handshake_ms = 1500});
  ASSERT_TRUE(s) << s.why().text;
  client silent(**s), garbage(**s), clear(**s);
  garbage.send(std::string(5000, 'g'));
  clear.send(get());
  auto c = client_with({}, a.trust());
  auto got = ask_whole(*c, secured(**s, "relay"));
  EXPECT_TRUE(got) << got.why().text;
  EXPECT_TRUE(silent.closed_now()) << "a handshake that never comes is not waited for";
  garbage.take_all();
  clear.take_all();
  EXPECT_EQ(p.arrivals(), 1u);
}

TEST(HttpTls, FilesThatCannotBeUsedAreNamed) {
  certified a("relay"), b("relay");
  program p(echo);
  auto refused = [&](const http_identity& as, const std::string& names) {
    auto s = serve_tls(p, as);
    ASSERT_FALSE(s);
    EXPECT_NE(s.why().text.find(names), std::string::npos) << s.why().text;
  };
  refused({a.folder_ / "none.crt", a.identity().key}, "none.crt");
  refused({a.identity().certificate, a.folder_ / "none.key"}, "none.key");
  refused({a.identity().certificate, b.identity().key},
          "does not belong");  // not that certificate's
  refused({a.identity().key, a.identity().key}, "not a certificate");
  a.put("empty.crt", "nothing");
  EXPECT_FALSE(http_client::start({}, {a.folder_ / "empty.crt"}));
  EXPECT_FALSE(http_client::start({}, {a.folder_ / "none.crt"}));
}

}  // namespace
}  // namespace lethe

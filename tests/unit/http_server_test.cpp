// What HTTP/1.1 promises: framing, keep-alive, pipelining, HEAD, streams; and whom the program
// hears from.

#include <dirent.h>
#include <netinet/tcp.h>

#include <atomic>

#include "tests/unit/http_peers.hpp"

namespace lethe {
namespace {

using namespace http_test;

TEST(HttpServer, HandsOverARequestAndSendsItsAnswer) {
  program p(echo);
  auto s = serve(p);
  client c(*s);
  auto r = c.ask(post("the body"));
  EXPECT_EQ(r.status, 200);
  EXPECT_EQ(r.body, "POST /p? the body");
  EXPECT_EQ(r.field("Content-Type"), "text/plain");
  EXPECT_EQ(r.field("Connection"), "");
  EXPECT_TRUE(r.field("Date").ends_with(" GMT"));
  EXPECT_TRUE(p.wait_sent(p.wait_arrived()));
  EXPECT_EQ(p.drained_of(1), r.body.size());
}

TEST(HttpServer, RequestLivesInItsArenaAndEveryArenaIsDestroyed) {
  auto before = count_arenas().alive;
  program p([](http_server& s, http_request& r) {
    auto* at = static_cast<char*>(r.memory.take(1, 1));
    auto inside = [&](std::string_view t) {  // of memory taken before `at`
      return t.data() < at && t.data() > at - (1 << 20);
    };
    EXPECT_TRUE(inside(r.body) && inside(r.head.path) && inside(r.head.field("authorization")));
    EXPECT_EQ(r.head.field("AUTHORIZATION"), "Bearer k");
    EXPECT_EQ(r.listener, 0u);
    s.answer(r.id, {}, "{}");
  });
  auto s = serve(p);
  client c(*s);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(c.ask(post("canary", "Authorization:  Bearer k \r\n")).body, "{}");
  EXPECT_EQ(count_arenas().alive, before);
}

TEST(HttpServer, KeepsTheConnectionUntilEitherSideSaysClose) {
  program p(echo);
  auto s = serve(p);
  client c(*s);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(c.ask(get("/a?x=" + std::to_string(i))).status, 200);
  auto last = c.ask("GET /z HTTP/1.1\r\nHost: x\r\nConnection: foo, Close\r\n\r\n");
  EXPECT_EQ(last.field("Connection"), "close");
  EXPECT_TRUE(c.closed_now());
  EXPECT_EQ(s->numbers().accepted, 1u);
}

TEST(HttpServer, AnEndAfterTheLastByteIsOutLetsTheNextRequestIn) {
  program p([](http_server& s, http_request& r) {
    s.begin(r.id, {.content_length = 4});
    s.write(r.id, "four");
  });
  auto s = serve(p);
  client c(*s);
  for (size_t i = 1; i <= 2; ++i) {
    EXPECT_TRUE(c.send(get()));
    EXPECT_EQ(c.take_reply().body, "four");
    uint64_t id = p.wait_arrived(i);
    EXPECT_TRUE(p.wait_drained(id, 4));
    s->end(id);
    EXPECT_TRUE(p.wait_sent(id));
  }
}

TEST(HttpServer, AnswersPipelinedRequestsInOrder) {
  program p(echo);
  auto s = serve(p);
  client c(*s);
  std::string all;
  for (int i = 0; i < 50; ++i)
    all += i % 3 == 0   ? get("/" + std::to_string(i))
           : i % 3 == 1 ? post("b" + std::to_string(i))
                        : "\r\n" + chunked(chunk("b" + std::to_string(i)) + "0\r\n\r\n");
  EXPECT_TRUE(c.send(all));
  for (int i = 0; i < 50; ++i) {
    auto n = std::to_string(i);
    EXPECT_EQ(c.take_reply().body, i % 3 == 0   ? "GET /" + n + "? "
                                   : i % 3 == 1 ? "POST /p? b" + n
                                                : "POST /c? b" + n);
  }
}

TEST(HttpServer, TakesARequestThatComesByteByByte) {
  program p(echo);
  auto s = serve(p);
  client c(*s);
  int on = 1;
  setsockopt(c.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  for (auto& request :
       {post("12345"), chunked("3;x=y\r\nabc\r\n0\r\nTrailer: t\r\n\r\n"), get("/q?r")}) {
    for (char b : request) EXPECT_TRUE(c.send({&b, 1}));
    EXPECT_EQ(c.take_reply().status, 200);
  }
}

TEST(HttpServer, HeadGetsTheHeadAlone) {
  program p(echo);
  auto s = serve(p);
  client c(*s);
  EXPECT_TRUE(c.send("HEAD /h HTTP/1.1\r\nHost: x\r\n\r\n" + get("/next")));
  EXPECT_EQ(c.take_reply(false).field("Content-Length"), "9");
  EXPECT_EQ(c.take_reply().body, "GET /next? ");
  EXPECT_EQ(p.drained_of(1), 9u);  // the writer gets its credit all the same
}

TEST(HttpServer, StatusesWithoutABodyHaveNone) {
  program p([](http_server& s, http_request& r) { s.answer(r.id, {.status = 204}, ""); });
  auto s = serve(p);
  client c(*s);
  EXPECT_TRUE(c.send(get() + get()));
  for (int i = 0; i < 2; ++i) {
    auto r = c.take_head();
    EXPECT_EQ(r.status, 204);
    EXPECT_EQ(r.field("Content-Length") + r.field("Transfer-Encoding"), "");
  }
}

TEST(HttpServer, OldClientsGetNoChunksAndAClose) {
  program p([](http_server& s, http_request& r) {
    s.begin(r.id, {.content_type = "text/event-stream"});
    s.write(r.id, "one ");
    s.write(r.id, "two");
    s.end(r.id);
  });
  auto s = serve(p);
  client c(*s);
  EXPECT_TRUE(c.send("GET / HTTP/1.0\r\n\r\n"));
  auto r = c.take_head();
  EXPECT_EQ(r.field("Transfer-Encoding"), "");
  EXPECT_EQ(r.field("Connection"), "close");
  EXPECT_EQ(c.take_all(), "one two");
}

TEST(HttpServer, ExpectationIsMetBeforeTheBodyIsSent) {
  program p(echo);
  auto s = serve(p);
  client c(*s);
  EXPECT_TRUE(
      c.send("POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n"));
  EXPECT_EQ(c.take_to("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_EQ(c.ask("abc").body, "POST /? abc");
  // A body that is here already needs no word.
  EXPECT_EQ(c.ask(post("abc", "Expect: 100-continue\r\n")).status, 200);
  EXPECT_EQ(c.ask(post("abc", "Expect: the-moon\r\n")).status, 417);
}

TEST(HttpServer, EachPieceOfAStreamIsSentAtOnce) {
  program p;
  auto s = serve(p);
  client c(*s);
  EXPECT_TRUE(c.send(get()));
  auto id = p.wait_arrived();
  s->begin(id, {.content_type = "text/event-stream", .fields = {{"Cache-Control", "no-store"}}});
  auto head = c.take_head();
  EXPECT_EQ(head.field("Transfer-Encoding"), "chunked");
  EXPECT_EQ(head.field("Cache-Control"), "no-store");
  for (int i = 0; i < 20; ++i) {  // the next is written only when this one is here
    auto piece = "data: " + std::to_string(i) + "\n\n";
    s->write(id, piece);
    EXPECT_EQ(c.take_chunk(), piece);
  }
  s->end(id);
  EXPECT_EQ(c.take_chunk(), "");
  EXPECT_TRUE(p.wait_sent(id));
}

TEST(HttpServer, AcceptedSocketsDoNotWaitToFillPackets) {
  program p(echo);
  auto s = serve(p);
  client c(*s);
  EXPECT_EQ(c.ask(get()).status, 200);
  sockaddr_in mine{};
  socklen_t size = sizeof mine;
  getsockname(c.fd(), reinterpret_cast<sockaddr*>(&mine), &size);
  int found = 0;
  for (int fd = 0; fd < 1024; ++fd) {  // the server's end is in this process
    sockaddr_in peer{};
    size = sizeof peer;
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) continue;
    if (peer.sin_family != AF_INET || peer.sin_port != mine.sin_port) continue;
    int on = 0;
    size = sizeof on;
    getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, &size);
    found += on != 0;
  }
  EXPECT_EQ(found, 1);
}

TEST(HttpServer, ManyPiecesTakeOneWakeup) {
  std::atomic<bool> go = false, here = false;
  program p([&](http_server&, http_request&) {
    here = true;
    while (!go) std::this_thread::yield();  // the server's thread is busy
  });
  auto s = serve(p);
  client c(*s);
  EXPECT_TRUE(c.send(get()));
  while (!here) std::this_thread::yield();
  auto before = s->numbers().wakeups;
  s->begin(1, {});
  for (int i = 0; i < 1000; ++i) s->write(1, "piece");
  s->end(1);
  EXPECT_EQ(s->numbers().wakeups, before + 1);
  go = true;
  EXPECT_EQ(c.take_reply().body.size(), 5000u);
}

TEST(HttpServer, ServesIpv6AndUnixSocketsAndSaysWhichWasAsked) {
  program p(
      [](http_server& s, http_request& r) { s.answer(r.id, {}, std::to_string(r.listener)); });
  auto path = "unix:/tmp/lethe-http-test-" + std::to_string(getpid());
  http_listener where[] = {{"api", "127.0.0.1:0"}, {"six", "[::1]:0"}, {"admin", path}};
  {
    auto s = http_server::start(where, {}, p);
    ASSERT_TRUE(s) << s.why().text;
    auto bound = (*s)->bound();
    ASSERT_EQ(bound.size(), 3u);
    EXPECT_NE(bound[0].address, "127.0.0.1:0");
    EXPECT_EQ(bound[1].role, "six");
    for (size_t i = 0; i < 3; ++i)
      EXPECT_EQ(client(bound[i].address).ask(get()).body, std::to_string(i));
    auto twice = http_server::start({&where[2], 1}, {}, p);
    ASSERT_FALSE(twice);
    EXPECT_NE(twice.why().text.find("in use"), std::string::npos);
  }
  EXPECT_NE(access(path.c_str() + 5, F_OK), 0);
}

TEST(HttpServer, SaysWhyItCannotStart) {
  program p;
  auto s = serve(p);
  auto why = [&](const std::string& address) {
    http_listener where[] = {{"api", address}};
    auto made = http_server::start(where, {}, p);
    return made ? std::string() : made.why().text;
  };
  EXPECT_EQ(why(s->bound()[0].address),
            "http: " + s->bound()[0].address +
                " is in use; stop the program that listens there or choose another address (api)");
  for (auto bad : {"", "8080", "localhost:80", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:8x",
                   "[::1]", "[::g]:1", "::1:80", "unix:"})
    EXPECT_NE(why(bad).find("http: "), std::string::npos) << bad;
  EXPECT_NE(why("192.0.2.1:0").find("no address of this host"), std::string::npos);
  EXPECT_FALSE(http_server::start({}, {}, p));
  http_listener where[] = {{"api", "127.0.0.1:0"}};
  EXPECT_FALSE(http_server::start(where, {.head_bytes_max = 1023}, p));
  EXPECT_TRUE(http_server::start(where, {.head_bytes_max = 1024}, p));
  EXPECT_FALSE(http_server::start(where, {.connections_max = 0}, p));
  EXPECT_FALSE(http_server::start(where, {.send_ms = 0}, p));
}

TEST(HttpServer, TwoHundredClientsWithTwentyRequestsEach) {
  program p([](http_server& s, http_request& r) {
    if (r.id % 2) return echo(s, r);
    s.begin(r.id, {});  // every second answer is a stream
    s.write(r.id, r.head.method);
    s.write(r.id, " /p? ");
    s.write(r.id, r.body);
    s.end(r.id);
  });
  auto s = serve(p);
  std::vector<client> clients;
  for (int i = 0; i < 200; ++i) clients.emplace_back(*s);
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int round = 0; round < 20; ++round) {
        for (int i = t; i < 200; i += 4)
          clients[size_t(i)].send(post(std::to_string(i * 1000 + round)));
        for (int i = t; i < 200; i += 4)
          right += clients[size_t(i)].take_reply().body ==
                   "POST /p? " + std::to_string(i * 1000 + round);
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(right, 4000);
  EXPECT_EQ(s->numbers().connections, 200u);
  s.reset();
  EXPECT_EQ(p.arrivals(), 4000u);
  p.expect_one_last_word_each();
}

}  // namespace
}  // namespace lethe

// Each limit at, above and below; requests that are none; clients that leave, stall or stay.

#include <sys/resource.h>

#include <atomic>

#include "tests/unit/http_peers.hpp"

namespace lethe {
namespace {

using namespace http_test;

void expect_refused(client& c, int status, const std::string& about) {
  auto r = c.take_reply();
  EXPECT_EQ(r.status, status) << about;
  EXPECT_TRUE(r.body.starts_with(R"({"error":{"message":")")) << about;
  EXPECT_TRUE(r.body.ends_with(R"(","type":"invalid_request_error","param":null,"code":null}})"));
  EXPECT_EQ(r.body.find("canary"), std::string::npos) << about;
  EXPECT_EQ(r.field("Connection"), "close") << about;
  EXPECT_TRUE(c.closed_now()) << about;
}

std::string head_of(size_t bytes) {
  std::string head = "GET / HTTP/1.1\r\nHost: x\r\nX-Fill: ";
  return head + std::string(bytes - head.size() - 4, 'f') + "\r\n\r\n";
}

TEST(HttpLimits, HeadBytes) {
  program p(echo);
  auto s = serve(p, {.head_bytes_max = 2048});
  client c(*s);
  EXPECT_EQ(c.ask(head_of(2047)).status, 200);
  EXPECT_EQ(c.ask(head_of(2048)).status, 200);
  EXPECT_EQ(c.ask("\r\n\r\n" + head_of(2048)).status, 200);
  c.send(head_of(2049));
  expect_refused(c, 431, "one byte more");
  client endless(*s);
  endless.send(std::string(100'000, 'x'));
  expect_refused(endless, 431, "no line end at all");
  EXPECT_TRUE(eventually([&] { return s->numbers().refused == 2; }));
}

/// All that a request with a body has.
const std::string whole_requests[] = {
    "POST /v1/p?q=1 HTTP/1.1\r\nHost: x\r\nX-A: b, c\r\nContent-Length: 4\r\n\r\nbody",
    "POST /v1/p HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
    "chunked\r\n\r\n2\r\nbo\r\n2;x=y\r\ndy\r\n0\r\n"
    "T: r\r\n\r\n"};

TEST(HttpLimits, AHeadThatIsCutAtAnyByteIsNone) {
  for (const std::string& text : whole_requests) {
    const size_t head = text.find("\r\n\r\n") + 4;
    for (size_t bytes = 0; bytes <= head; ++bytes) {
      const std::string_view part = std::string_view(text).substr(0, bytes);
      auto found = find_head_end(part, 1000);
      ASSERT_TRUE(std::holds_alternative<std::optional<size_t>>(found)) << bytes;
      EXPECT_EQ(std::get<0>(found), bytes == head ? std::optional(head) : std::nullopt) << bytes;
      auto read = read_head(part, {}, std::pmr::get_default_resource());
      EXPECT_EQ(std::holds_alternative<http_head>(read), bytes == head) << bytes;
    }
  }
}

TEST(HttpLimits, ARequestThatIsCutAtAnyByteNeverArrives) {
  program p(echo);
  auto s = serve(p);
  for (const std::string& text : whole_requests) {
    for (size_t bytes = 0; bytes < text.size(); ++bytes) {
      client c(*s);
      EXPECT_TRUE(c.send(std::string_view(text).substr(0, bytes)));
      c.half_close();
      EXPECT_EQ(c.take_all().find("HTTP/1.1 200"), std::string::npos) << bytes;
    }
    EXPECT_EQ(p.arrivals(), 0u);
  }
  client c(*s);
  EXPECT_EQ(c.ask(whole_requests[0]).status, 200);
  EXPECT_EQ(c.ask(whole_requests[1]).status, 200);
}

TEST(HttpLimits, Fields) {
  program p(echo);
  auto s = serve(p, {.fields_max = 20});
  auto with = [](int fields) {
    std::string text = "GET / HTTP/1.1\r\nHost: x\r\n";
    for (int i = 1; i < fields; ++i) text += "X: y\r\n";
    return text + "\r\n";
  };
  client c(*s);
  EXPECT_EQ(c.ask(with(19)).status, 200);
  EXPECT_EQ(c.ask(with(20)).status, 200);
  c.send(with(21));
  expect_refused(c, 431, "21 fields");
}

TEST(HttpLimits, BodyBytes) {
  program p(echo);
  auto s = serve(p, {.body_bytes_max = 100'000});
  client c(*s);
  for (size_t size : {0, 1, 99'999, 100'000}) {
    std::string body(size, 'b');
    EXPECT_EQ(c.ask(post(body)).body, "POST /p? " + body);
    auto pieces = size < 2 ? chunk("a") : chunk("a") + chunk(body.substr(1));
    EXPECT_EQ(c.ask(chunked(pieces + "0\r\n\r\n")).body.size(), 9 + std::max(size, size_t{1}));
  }
  client announced(*s);  // refused for what it says, before it is sent
  announced.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100001\r\n\r\ncanary");
  expect_refused(announced, 413, "announced");
  client asks(*s);
  asks.send("POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 100001\r\n\r\n");
  expect_refused(asks, 413, "asks first");
  client chunks(*s);
  chunks.send(chunked(chunk(std::string(100'000, 'b')) + chunk("c") + "0\r\n\r\n"));
  expect_refused(chunks, 413, "chunks");
  // Still sending when it is refused: the answer gets through.
  client sends(*s);
  std::thread sender([&] {
    sends.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 400000\r\n\r\n");
    sends.send(std::string(400'000, 'b'));
  });
  expect_refused(sends, 413, "sends on");
  sender.join();
}

TEST(HttpLimits, BytesOfAllBodiesTogether) {
  std::mutex mutex;
  std::vector<http_request> kept;  // by a handler that takes its time
  size_t taken = 0;
  program p([&](http_server&, http_request& r) {
    std::lock_guard guard(mutex);
    kept.push_back(std::move(r));
    ++taken;
  });
  auto s = serve(p, {.body_bytes_max = 100'000, .bodies_bytes_max = 250'000});
  std::vector<client> clients;
  auto arrives = [&](const std::string& text) {
    EXPECT_TRUE(clients.emplace_back(*s).send(text));
    EXPECT_TRUE(eventually([&] {
      std::lock_guard guard(mutex);
      return taken == clients.size();
    })) << "no request arrived";
  };
  auto announces = [](size_t bytes) {
    return "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(bytes) + "\r\n\r\n";
  };
  for (int i = 0; i < 2; ++i) arrives(post(std::string(100'000, 'b')));
  client above(*s);  // before any of it is read
  above.send(announces(50'001));
  expect_refused(above, 503, "one byte more than is left");
  arrives(post(std::string(50'000, 'b')));
  client pieces(*s);
  pieces.send(chunked(chunk("x") + "0\r\n\r\n"));
  expect_refused(pieces, 503, "nothing is left");
  arrives(get());
  {
    std::lock_guard guard(mutex);
    kept.front().held.release();
  }
  arrives(post(std::string(99'999, 'b')));
  client second(*s);
  second.send(announces(2));
  expect_refused(second, 503, "one byte is left");
  {
    std::lock_guard guard(mutex);
    kept.clear();
  }
  arrives(chunked(chunk(std::string(100'000, 'b')) + "0\r\n\r\n"));
  {
    std::lock_guard guard(mutex);
    kept.clear();
  }
  const auto accepted = s->numbers().accepted;
  client leaves(*s);  // with a part of it
  leaves.send(announces(100'000) + std::string(60'000, 'b'));
  leaves.reset();
  EXPECT_TRUE(eventually([&] {
    auto n = s->numbers();
    return n.accepted > accepted && n.connections == clients.size();
  }));
  for (int i = 0; i < 2; ++i) arrives(post(std::string(100'000, 'b')));
  arrives(post(std::string(50'000, 'b')));
}

TEST(HttpLimits, ABudgetThatOneBodyDoesNotFitIsRefused) {
  program p(echo);
  http_listener where[] = {{"api", "127.0.0.1:0"}};
  for (size_t budget : {99'999, 100'000}) {
    auto s = http_server::start(where, {.body_bytes_max = 100'000, .bodies_bytes_max = budget}, p);
    EXPECT_EQ(bool(s), budget == 100'000);
  }
}

TEST(HttpLimits, NoBodyAtAllMayBeAllowed) {
  program p(echo);
  auto s = serve(p, {.body_bytes_max = 0});
  client c(*s);
  EXPECT_EQ(c.ask(get()).status, 200);
  EXPECT_EQ(c.ask(chunked("0\r\n\r\n")).status, 200);
  c.send(post("x"));
  expect_refused(c, 413, "one byte");
}

TEST(HttpLimits, Connections) {
  program p(echo);
  auto s = serve(p, {.connections_max = 3});
  std::vector<client> all;
  for (int i = 0; i < 3; ++i) {
    all.emplace_back(*s);
    EXPECT_EQ(all.back().ask(get()).status, 200);
  }
  client fourth(*s);
  fourth.send(get("/canary"));
  expect_refused(fourth, 503, "the fourth");
  fourth.close();
  all.pop_back();
  EXPECT_TRUE(eventually([&] { return s->numbers().connections == 2; }));
  client again(*s);
  EXPECT_EQ(again.ask(get()).status, 200);
}

TEST(HttpLimits, BeyondThoseBeingRefusedNoneIsAccepted) {
  program p(echo);
  auto s = serve(p, {.connections_max = 1, .linger_ms = 60'000});
  client first(*s);
  EXPECT_EQ(first.ask(get()).status, 200);
  std::vector<client> more;
  for (int i = 0; i < 80; ++i) more.emplace_back(*s);  // 64 hear 503 and stay, the rest waits
  EXPECT_TRUE(eventually([&] { return s->numbers().accepted == 65; }));
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(s->numbers().accepted, 65u);
  EXPECT_EQ(first.ask(get()).status, 200);
  more.clear();
  EXPECT_TRUE(eventually([&] { return s->numbers().accepted == 81; }));
}

TEST(HttpLimits, IdleTime) {
  program p(echo);
  auto s = serve(p, {.idle_ms = 200});
  client c(*s), silent(*s);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(c.ask(get()).status, 200);
    std::this_thread::sleep_for(60ms);  // busy for longer than that, idle for less
  }
  EXPECT_TRUE(c.closed_now());
  EXPECT_TRUE(silent.closed_now());
  EXPECT_TRUE(eventually([&] { return s->numbers().connections == 0; }));
}

TEST(HttpLimits, TimeToSendARequest) {
  program p(echo);
  auto s = serve(p, {.request_ms = 200});
  for (auto begun : {std::string("G"), std::string("GET / HTTP/1.1\r\nHost: x\r\n"),
                     post(std::string(20, 'b')).substr(0, 60), chunked("5\r\n12")}) {
    client c(*s);
    c.send(begun);
    expect_refused(c, 408, begun);
  }
  client drips(*s);  // never silent, never done
  for (bool open = true; open; std::this_thread::sleep_for(5ms)) open = drips.send("X");
  EXPECT_TRUE(eventually([&] { return s->numbers().connections == 0; }));
  client c(*s);  // an answer may take longer than a request
  EXPECT_EQ(c.ask(get()).status, 200);
}

TEST(HttpLimits, AnAnswerMayTakeItsTime) {
  program p;
  auto s = serve(p, {.idle_ms = 50, .request_ms = 50, .send_ms = 50, .linger_ms = 50});
  client c(*s);
  c.send(get());
  auto id = p.wait_arrived();
  std::this_thread::sleep_for(200ms);
  s->answer(id, {}, "late");
  EXPECT_EQ(c.take_reply().body, "late");
}

TEST(HttpLimits, QueuedBytes) {
  constexpr size_t most = 200'000;
  auto run = [](size_t first, size_t second) {
    std::atomic<bool> go = false;
    program p([&](http_server&, http_request&) {
      while (!go) std::this_thread::yield();
    });
    auto s = serve(p, {.queued_bytes_max = most});
    client c(*s);
    c.send(get());
    p.wait_arrived();
    s->begin(1, {});
    s->write(1, std::string(first, 'a'));  // both wait when the server looks
    s->write(1, std::string(second, 'b'));
    s->end(1);
    go = true;
    auto size = c.take_reply().body.size();
    s.reset();
    p.expect_one_last_word_each();
    return size;
  };
  EXPECT_EQ(run(100'000, most - 100'001), most - 1);
  EXPECT_EQ(run(100'000, most - 100'000), most);
  EXPECT_EQ(run(100'000, most - 99'999), 0u);
  EXPECT_EQ(run(most * 10, 0), most * 10);  // alone, a piece may be larger
}

TEST(HttpLimits, CreditKeepsASlowReaderWithinItsQueue) {
  constexpr size_t piece = 10'000, most = 4 * piece, pieces = 2000;
  program p;
  auto s = serve(p, {.queued_bytes_max = most});
  client c(*s, 4096);
  c.send(get());
  auto id = p.wait_arrived();
  s->begin(id, {});
  std::thread writer([&] {
    for (size_t i = 1; i <= pieces; ++i) {
      EXPECT_TRUE(p.wait_drained(id, i * piece > most ? i * piece - most : 0));
      s->write(id, std::string(piece, char('a' + i % 26)));
    }
    s->end(id);
  });
  c.take_head();
  std::this_thread::sleep_for(100ms);
  EXPECT_LT(p.drained_of(id), piece * pieces);  // it waits for the reader
  for (size_t i = 1; i <= pieces; ++i)
    ASSERT_EQ(c.take_chunk(), std::string(piece, char('a' + i % 26)));
  EXPECT_EQ(c.take_chunk(), "");
  writer.join();
  EXPECT_TRUE(p.wait_sent(id));
  EXPECT_EQ(p.drained_of(id), piece * pieces);
}

TEST(HttpLimits, AReaderThatStopsReadingIsCut) {
  program p;
  auto s = serve(p, {.queued_bytes_max = size_t{64} << 20, .send_ms = 1000});
  client stops(*s, 4096), reads(*s);
  stops.send(get());
  auto id = p.wait_arrived();
  s->answer(id, {}, std::string(size_t{16} << 20, 'x'));
  EXPECT_TRUE(p.wait_left(id));
  reads.send(get());
  auto other = p.wait_arrived(2);
  s->answer(other, {}, std::string(size_t{16} << 20, 'x'));
  EXPECT_EQ(reads.take_reply().body.size(), size_t{16} << 20);
}

TEST(HttpLimits, OutOfDescriptorsItServesWhomItHas) {
#ifdef LETHE_SANITIZED
  GTEST_SKIP() << "the sanitizer looks at memory through a pipe, and there is none left";
#endif
  program p(echo);
  auto s = serve(p);
  client c(*s);
  EXPECT_EQ(c.ask(get()).status, 200);
  client waits(*s);
  EXPECT_EQ(waits.ask(get()).status, 200);
  rlimit before{}, none{};
  getrlimit(RLIMIT_NOFILE, &before);
  client late = [&] {
    client made(*s);
    return made;
  }();
  EXPECT_EQ(late.ask(get()).status, 200);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);  // made before the limit falls
  none = {.rlim_cur = rlim_t(fd) + 1, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &none);
  sockaddr_in to{.sin_family = AF_INET};
  auto address = s->bound()[0].address;
  to.sin_port = htons(uint16_t(std::stoi(address.substr(address.rfind(':') + 1))));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(s->numbers().accepted, 3u);
  EXPECT_EQ(c.ask(get()).status, 200);
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_TRUE(eventually([&] { return s->numbers().accepted == 4; }));
  ::close(fd);
}

}  // namespace
}  // namespace lethe

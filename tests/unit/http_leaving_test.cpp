// Clients that go, servers that end, programs that err, and bytes that are no request.

#include <atomic>
#include <random>

#include "tests/unit/http_peers.hpp"

namespace lethe {
namespace {

using namespace http_test;

TEST(HttpLeaving, IsNoticedBeforeAnythingIsWritten) {
  for (auto leave : {&client::close, &client::reset, &client::half_close}) {
    program p;
    auto s = serve(p);
    client c(*s);
    c.send(post("a question"));
    auto id = p.wait_arrived();
    auto begin = std::chrono::steady_clock::now();
    (c.*leave)();
    EXPECT_TRUE(p.wait_left(id));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 1s);
    s->begin(id, {});  // harmless
    s->write(id, "nobody reads this");
    s->end(id);
    s->answer(id, {}, "nor this");
    s->answer(12345, {}, "nor was there ever such a request");
    client other(*s);
    other.send(get());
    s->answer(p.wait_arrived(2), {}, "yes");
    EXPECT_EQ(other.take_reply().body, "yes");
    s.reset();
    p.expect_one_last_word_each();
  }
}

TEST(HttpLeaving, IsNoticedWithinAStreamAndBehindAPipelinedRequest) {
  program p;
  auto s = serve(p);
  client c(*s);
  c.send(get() + get("/next"));
  auto id = p.wait_arrived();
  s->begin(id, {});
  s->write(id, "piece");
  c.take_head();
  c.close();
  EXPECT_TRUE(p.wait_left(id));
  EXPECT_EQ(p.arrivals(), 1u);
  EXPECT_TRUE(eventually([&] { return s->numbers().connections == 0; }));
}

TEST(HttpLeaving, AResetBetweenAnAnswerAndItsWriteHarmsNobodyElse) {
  std::atomic<bool> go = false;
  program p([&](http_server&, http_request& r) {
    while (r.head.path == "/block" && !go) std::this_thread::yield();
  });
  auto s = serve(p);
  client c(*s), blocks(*s);
  c.send(get());
  auto id = p.wait_arrived();
  blocks.send(get("/block"));
  auto other = p.wait_arrived(2);
  s->answer(id, {}, "for nobody");  // the server's thread looks at this first,
  c.reset();                        // and its write fails at once
  go = true;
  EXPECT_TRUE(p.wait_left(id));
  s->answer(other, {}, "yes");
  EXPECT_EQ(blocks.take_reply().body, "yes");
}

TEST(HttpLeaving, AHalfSentRequestNeverArrives) {
  program p;
  auto s = serve(p);
  auto before = count_arenas().alive;
  for (auto begun : {post("12345").substr(0, 20), post(std::string(20, 'b')).substr(0, 60),
                     chunked("5\r\n12"), std::string()}) {
    client c(*s), d(*s);
    c.send(begun), d.send(begun);
    d.half_close();
    EXPECT_TRUE(d.closed_now());
  }
  EXPECT_TRUE(eventually([&] { return s->numbers().connections == 0; }));
  EXPECT_EQ(p.arrivals(), 0u);
  EXPECT_EQ(count_arenas().alive, before);
}

TEST(HttpLeaving, StopAcceptingFinishesWhatBegan) {
  program p;
  auto s = serve(p);
  client idle(*s), streams(*s), sends(*s), waits(*s);
  streams.send(get());
  auto streamed = p.wait_arrived();
  s->begin(streamed, {});
  s->write(streamed, "one");
  streams.take_head();
  waits.send(get());
  auto waited = p.wait_arrived(2);
  auto request = post("12345");
  sends.send(request.substr(0, 30));
  EXPECT_TRUE(eventually([&] { return s->numbers().connections == 4; }));
  std::this_thread::sleep_for(20ms);
  auto address = s->bound()[0].address;
  s->stop_accepting();
  s->stop_accepting();
  EXPECT_TRUE(idle.closed_now());
  s->write(streamed, "two");
  s->end(streamed);
  for (auto piece : {"one", "two", ""}) EXPECT_EQ(streams.take_chunk(), piece);
  EXPECT_TRUE(streams.closed_now());
  s->answer(waited, {}, "yes");
  auto r = waits.take_reply();
  EXPECT_EQ(r.body + r.field("Connection"), "yesclose");
  sends.send(request.substr(30));
  s->answer(p.wait_arrived(3), {}, "also");
  EXPECT_EQ(sends.take_reply().body, "also");
  streams.close(), waits.close(), sends.close();
  EXPECT_TRUE(eventually([&] { return s->numbers().connections == 0; }));
  auto again = serve(p, {}, address);  // the port is free
  EXPECT_NE(again, nullptr);
}

TEST(HttpLeaving, TheServersEndIsTheLastWord) {
  program p;
  auto s = serve(p);
  client c(*s), d(*s);
  c.send(get()), d.send(get());
  p.wait_arrived(2);
  s->begin(1, {});
  s.reset();
  p.expect_one_last_word_each();
  EXPECT_TRUE(p.wait_left(1) && p.wait_left(2));
}

TEST(HttpLeaving, AnswersThatContradictThemselvesCutTheConnection) {
  using answers = std::function<void(http_server&, uint64_t)>;
  auto begin = [](http_server& s, uint64_t id, size_t length) {
    s.begin(id, {.content_length = length});
  };
  const std::pair<const char*, answers> table[] = {
      {"too much", [&](auto& s, auto id) { begin(s, id, 2), s.write(id, "abc"); }},
      {"too little", [&](auto& s, auto id) { begin(s, id, 2), s.write(id, "a"), s.end(id); }},
      {"twice", [&](auto& s, auto id) { begin(s, id, 2), begin(s, id, 2); }},
      {"headless", [&](auto& s, auto id) { s.write(id, "a"); }},
      {"empty", [&](auto& s, auto id) { s.end(id); }},
      {"status", [&](auto& s, auto id) { s.answer(id, {.status = 99}, ""); }},
      {"interim", [&](auto& s, auto id) { s.answer(id, {.status = 100}, ""); }},
      {"type", [&](auto& s, auto id) { s.answer(id, {.content_type = "a\r\nb: c"}, ""); }},
      {"value",
       [&](auto& s, auto id) {
         s.answer(id, {.fields = {{"A", "b\nc"}}}, "");
       }},
      {"name",
       [&](auto& s, auto id) {
         s.answer(id, {.fields = {{"A b", "c"}}}, "");
       }},
      {"framing",
       [&](auto& s, auto id) {
         s.answer(id, {.fields = {{"CONNECTION", "c"}}}, "");
       }},
  };
  for (const auto& [name, wrong] : table) {
    program p;
    auto s = serve(p);
    client c(*s);
    c.send(get());
    auto id = p.wait_arrived();
    wrong(*s, id);
    EXPECT_TRUE(p.wait_left(id)) << name;
    c.take_all();
    client d(*s);
    d.send(get());
    s->answer(p.wait_arrived(2), {}, "fine");
    EXPECT_EQ(d.take_reply().body, "fine") << name;
  }
}

TEST(HttpGarbage, EachGetsAStatusAndTheServerLivesOn) {
  const std::string host = "Host: x\r\n\r\n";
  const std::pair<std::string, int> table[] = {
      {"canary\r\n\r\n", 400},
      {"GET /\r\n\r\n", 400},
      {"GET  / HTTP/1.1\r\n" + host, 400},
      {"GET / HTTP/1.1 \r\n" + host, 400},
      {" GET / HTTP/1.1\r\n" + host, 400},
      {"GET / HTTP/1.1\n" + host, 400},
      {"GET / HTTP/1.1\r\nHost: x\n\n", 400},
      {"GET / http/1.1\r\n" + host, 400},
      {"GET / HTTP/2.0\r\n" + host, 505},
      {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
      {"GET / HTTP/1.1\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: x\r\n" + host, 400},
      {"GET canary HTTP/1.1\r\n" + host, 400},
      {"CONNECT x:80 HTTP/1.1\r\n" + host, 400},
      {"GET /\x01 HTTP/1.1\r\n" + host, 400},
      {"GET /\xff HTTP/1.1\r\n" + host, 400},
      {"G(T / HTTP/1.1\r\n" + host, 400},
      {"AMETHODOFSEVENTEE / HTTP/1.1\r\n" + host, 501},
      {"GET / HTTP/1.1\r\nno colon\r\n" + host, 400},
      {"GET / HTTP/1.1\r\n: canary\r\n" + host, 400},
      {"GET / HTTP/1.1\r\nA : b\r\n" + host, 400},
      {"GET / HTTP/1.1\r\nA: b\r\n folded\r\n" + host, 400},
      {"GET / HTTP/1.1\r\nA: " + std::string("b\0c", 3) + "\r\n" + host, 400},
      {"GET / HTTP/1.1\r\nA: b\rc\r\n" + host, 400},
      {"POST / HTTP/1.1\r\nContent-Length: 1x\r\n" + host, 400},
      {"POST / HTTP/1.1\r\nContent-Length: -1\r\n" + host, 400},
      {"POST / HTTP/1.1\r\nContent-Length: +1\r\n" + host, 400},
      {"POST / HTTP/1.1\r\nContent-Length:\r\n" + host, 400},
      {"POST / HTTP/1.1\r\nContent-Length: 1, 1\r\n" + host, 400},
      {"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n" + host, 400},
      {"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n" + host, 413},
      {"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n" + host, 400},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n" + host, 501},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n" + host, 501},
      {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n" + host, 400},
      {chunked("canary\r\n"), 400},
      {chunked("\r\n"), 400},
      {chunked("-1\r\n"), 400},
      {chunked("0x1\r\na\r\n0\r\n\r\n"), 400},
      {chunked("1\na\r\n0\r\n\r\n"), 400},
      {chunked("1\r\nab\r\n0\r\n\r\n"), 400},
      {chunked("1\r\na\n0\r\n\r\n"), 400},
      {chunked("ffffffffffff\r\na"), 413},
      {chunked("10000000000000001\r\na"), 400},
      {chunked("1;" + std::string(5000, 'e') + "\r\na\r\n0\r\n\r\n"), 400},
      {chunked("0\r\n" + std::string(5000, 't') + "\r\n\r\n"), 400},
      {std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11) + "canary\r\n\r\n", 400},
      {std::string(20'000, '\0'), 431},
  };
  program p(echo);
  auto s = serve(p, {.body_bytes_max = 10'000});
  testing::internal::CaptureStderr();
  for (const auto& [bytes, status] : table) {
    client c(*s);
    c.send(bytes);
    auto r = c.take_reply();
    EXPECT_EQ(r.status, status) << bytes.substr(0, 100);
    EXPECT_EQ((r.head + r.body).find("canary"), std::string::npos) << bytes;
    EXPECT_TRUE(c.closed_now()) << bytes.substr(0, 100);
  }
  client c(*s);
  EXPECT_EQ(c.ask(get()).status, 200);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(p.arrivals(), 1u);
}

TEST(HttpGarbage, DamagedRequestsNeverStopTheServer) {
  program p(echo);
  auto s = serve(p, {.body_bytes_max = 1000, .idle_ms = 40, .request_ms = 40, .linger_ms = 20});
  std::mt19937 random(7);
  const std::string whole[] = {get("/a?b"), post("0123456789", "Expect: 100-continue\r\n"),
                               chunked(chunk("abc") + chunk("defg") + "0\r\nT: u\r\n\r\n")};
  testing::internal::CaptureStderr();
  for (int i = 0; i < 400; ++i) {
    std::string text = whole[i % 3] + whole[random() % 3];
    for (uint32_t n = random() % 4; n > 0; --n) {
      auto at = random() % text.size();
      if (random() % 2)
        text[at] = char(random());
      else
        text.erase(at, random() % 5);
    }
    client c(*s);
    c.send(text);
    if (random() % 2) c.half_close();
    if (random() % 2) c.take_all();
  }
  client c(*s);
  EXPECT_EQ(c.ask(get()).status, 200);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  s.reset();
  p.expect_one_last_word_each();
}

}  // namespace
}  // namespace lethe

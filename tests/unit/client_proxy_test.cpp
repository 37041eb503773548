// OpenAI's API on this machine, in front of a private client.
#include <latch>

#include "runtime/client/local_proxy.hpp"
#include "runtime/client/proxy_answer.hpp"
#include "tests/unit/client_cluster.hpp"
#include "tests/unit/http_peers.hpp"

namespace lethe {
namespace {

using namespace test;
using std::chrono::milliseconds;

template <class Holds>
bool comes_true(Holds holds) {
  for (int i = 0; i < 1000 && !holds(); ++i) std::this_thread::sleep_for(milliseconds(20));
  return holds();
}

struct ClientProxy : ::testing::Test {
  fake_cluster cluster;
  client_home home{cluster};
  std::atomic<uint64_t> steady{1000};
  std::atomic<uint32_t> told{0};  // of streams that were not proven
  std::unique_ptr<private_client> client = start({});
  std::unique_ptr<local_proxy> proxy = serve();
  std::unique_ptr<http_client> http = *http_client::start({}, {});

  std::unique_ptr<private_client> start(client_options o, bool buys = true) {
    o.now_s = [this] { return cluster.now_s; };
    o.steady_s = [this] { return steady.load(); };
    o.redraw_wait_ms = 0;
    auto made = private_client::start(home.file(), o);
    EXPECT_TRUE(made) << made.end.why.text;
    EXPECT_TRUE(!buys || (*made)->buy());
    return std::move(*made);
  }
  std::unique_ptr<local_proxy> serve(uint32_t calls_max = 4) {
    auto made = local_proxy::start(
        *client, "127.0.0.1:0", calls_max, [this](uint64_t, const check_step& step) {
          if (step.name == "call" && step.detail.find("no proof") != std::string::npos) ++told;
        });
    EXPECT_TRUE(made) << made.why().text;
    return *std::move(made);
  }
  http_call call_of(std::string body, std::string path = "/v1/chat/completions") {
    auto to = *read_url("http://" + proxy->bound()[0].address);
    return {.to = to.first, .method = "POST", .path = path, .body = std::move(body)};
  }
  http_whole ask(http_call call) {
    auto got = ask_whole(*http, std::move(call));
    EXPECT_TRUE(got) << got.why().text;
    return got ? *std::move(got) : http_whole{};
  }
  http_whole ask(std::string body) { return ask(call_of(std::move(body))); }
};

TEST_F(ClientProxy, PassesACallOnAndItsAnswerBack) {
  auto got = ask(R"({"model":"m","messages":[{"role":"user","content":"hello"}]})");
  EXPECT_EQ(got.head.status, 200);
  EXPECT_EQ(got.head.field("content-type"), "application/json");
  EXPECT_EQ(got.body, "{\"id\":\"1\"}");
  EXPECT_EQ(cluster.bodies[0], R"({"model":"m","messages":[{"role":"user","content":"hello"}]})");
  ask(call_of("{\"prompt\":\"x\"}", "/v1/completions"));
  EXPECT_EQ(cluster.paths[1], "/v1/completions");
}

TEST_F(ClientProxy, NothingOfTheApplicationLeavesButTheBody) {
  auto call = call_of(R"({"user":"alice","model":"m","metadata":{"a":[1]},"store":true,"n":1})");
  call.fields = {{"Authorization", "Bearer sk-application"},
                 {"User-Agent", "some-sdk/1.2"},
                 {"X-Stainless-Os", "Linux"},
                 {"OpenAI-Organization", "org"}};
  EXPECT_EQ(ask(std::move(call)).head.status, 200);
  EXPECT_EQ(cluster.bodies[0], R"({"model":"m","store":true,"n":1})")
      << "the node refuses to store";
  EXPECT_EQ(cluster.fields_inside, std::vector<std::string>{"content-type"});
  for (const auto& f : cluster.fields_outside) {
    EXPECT_EQ(f.find("sk-application"), std::string::npos);
    EXPECT_EQ(f.find("some-sdk"), std::string::npos);
    EXPECT_EQ(f.find("Linux"), std::string::npos);
  }
}

TEST_F(ClientProxy, AStreamStaysOpenForItsProofAndTellsOfItsLack) {
  cluster.says = {.type = "text/event-stream",
                  .pieces = {"data: {\"a\":1}\n\n", "data: {\"b\":2}\n\nda", "ta: [DONE]\n", "\n"}};
  auto got = ask("{\"stream\":true}");
  EXPECT_EQ(got.head.field("content-type"), "text/event-stream");
  EXPECT_EQ(got.body, "data: {\"a\":1}\n\ndata: {\"b\":2}\n\ndata: [DONE]\n\n");
  cluster.cheat.receipt_says = [](receipt& r) { r.epoch += 1; };
  got = ask("{\"stream\":true,\"n\":2}");
  EXPECT_TRUE(got.body.starts_with(
      "data: {\"a\":1}\n\ndata: {\"b\":2}\n\ndata: [DONE]\n\ndata: {\"error\":"))
      << got.body;
  EXPECT_NE(got.body.find("answer_broken"), std::string::npos) << got.body;
  EXPECT_EQ(told, 1u);
  cluster.cheat = {.cut_sealed = true};
  got = ask("{\"stream\":true,\"n\":3}");
  EXPECT_NE(got.body.find("[DONE]"), std::string::npos) << got.body;
  EXPECT_NE(got.body.find("answer_broken"), std::string::npos) << got.body;
  EXPECT_EQ(told, 2u);
  cluster.says.pieces.resize(1);  // an answer without its mark is none that an application has
  got = ask("{\"stream\":true,\"n\":4}");
  EXPECT_NE(got.body.find("answer_broken"), std::string::npos) << got.body;
  EXPECT_EQ(told, 2u);
}

/// An application that asks, reads up to a text and leaves, while what follows is held back.
void leave_at(const local_proxy& proxy, fake_cluster& cluster, const std::string& text) {
  std::latch left(1);
  cluster.hold = [&] { left.wait(); };
  http_test::client app(proxy.bound()[0].address);
  app.send("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}");
  EXPECT_TRUE(app.take_to(text).ends_with(text));
  app.reset();
  std::this_thread::sleep_for(milliseconds(200));  // the proxy may hear of it meanwhile
  left.count_down();
  cluster.join();
}

/// Else the network would see where the answer ended.
TEST_F(ClientProxy, WhoLeavesAtTheMarkDoesNotEndThePadding) {
  cluster.says = {.type = "text/event-stream", .pieces = {"data: [DONE]\n\n"}};
  leave_at(*proxy, cluster, "[DONE]");
  EXPECT_TRUE(comes_true([&] { return client->count().open == 0; }));
  EXPECT_EQ(client->count().tokens, 7u);
}

TEST_F(ClientProxy, WhoLeavesBeforeTheMarkEndsTheCall) {
  cluster.says = {.type = "text/event-stream", .pieces = {"data: {}\n\n", "data: {}\n\n"}};
  leave_at(*proxy, cluster, "{}");
  size_t none_due = 0;  // of a call that was not taken to its end
  EXPECT_TRUE(comes_true([&] { return (none_due += client->claim_pending().none_due) == 1; }));
}

/// Else it would be late by as much padding as it has content.
TEST_F(ClientProxy, AWholeAnswerIsNotHeldForItsPadding) {
  leave_at(*proxy, cluster, "{\"id\":\"1\"}");
  EXPECT_TRUE(comes_true([&] { return client->count().open == 0; }));
  EXPECT_EQ(client->count().tokens, 7u);
}

TEST_F(ClientProxy, AnAnswerWhoseProofIsBadIsToldInTheLog) {
  cluster.cheat.receipt_says = [](receipt& r) { r.epoch += 1; };
  auto got = ask("{}");
  EXPECT_EQ(got.head.status, 200);
  EXPECT_EQ(got.body, "{\"id\":\"1\"}");
  EXPECT_TRUE(comes_true([&] { return told == 1; }));
}

TEST_F(ClientProxy, AnAnswerThatIsNotWholeIsNone) {
  cluster.says.pieces = {"{\"id\":", "\"1\"}"};
  cluster.cheat.answer = [](auto& chunks) { chunks.resize(2); };  // nonce and first piece
  auto got = ask("{}");
  EXPECT_EQ(got.head.status, 502);
  EXPECT_NE(got.body.find("\"code\":\"answer_broken\""), std::string::npos) << got.body;
  EXPECT_EQ(got.body.find("\"id\""), std::string::npos);
  EXPECT_EQ(told, 0u);
}

TEST_F(ClientProxy, ErrorsAreOnesThatLibrariesUnderstand) {
  cluster.refuse = [](const inner_sealed&, const node_key&) {
    return inner_problem{503, "not ready", change_word::due};
  };
  auto got = ask("{\"a\":1}");
  EXPECT_EQ(got.head.status, 503);
  EXPECT_NE(got.body.find("\"code\":\"cluster_busy\""), std::string::npos) << got.body;
  got = ask("{\"a\":1}");  // what a library repeats by itself
  EXPECT_EQ(got.head.status, 400);
  EXPECT_NE(got.body.find("\"code\":\"exposure_spent\""), std::string::npos) << got.body;
  got = ask("{\"b\":1}");
  EXPECT_EQ(ask("{\"c\":1}").head.status, 402);  // 8 tokens: three, three, two
  got = ask("{\"d\":1}");
  EXPECT_EQ(got.head.status, 402);
  EXPECT_NE(got.body.find("\"code\":\"no_tokens\""), std::string::npos) << got.body;
  EXPECT_EQ(to_api_error(fault(call_fault::relay, "x")).status, 502);
  EXPECT_EQ(to_api_error(fault(call_fault::trust, "x")).status, 403);
  EXPECT_EQ(ask("{\"e\":").head.status, 400);
  EXPECT_EQ(ask("[]").head.status, 400);
  EXPECT_EQ(ask("{\"x\":\"" + std::string(20'000, 'x') + "\"}").head.status, 413);
}

TEST_F(ClientProxy, ListsTheModelsOfTheRoster) {
  auto call = call_of("", "/v1/models");
  call.method = "GET";
  auto got = ask(std::move(call));
  EXPECT_EQ(got.body,
            R"({"object":"list","data":[{"id":"ember-nano/cpu","object":"model","created":0,)"
            R"("owned_by":"lethe"}]})");
}

TEST_F(ClientProxy, ShowsOneModelOfTheRoster) {
  auto shown = [&](const char* path) {
    auto call = call_of("", path);
    call.method = "GET";
    return ask(std::move(call));
  };
  for (const char* path : {"/v1/models/ember-nano/cpu", "/v1/models/ember-nano%2Fcpu"})
    EXPECT_EQ(shown(path).body,
              R"({"id":"ember-nano/cpu","object":"model","created":0,"owned_by":"lethe"})");
  for (const char* path : {"/v1/models/", "/v1/models/ember", "/v1/models/ember-nano%2fcpu%"}) {
    EXPECT_EQ(shown(path).head.status, 404) << path;
    EXPECT_NE(shown(path).body.find("model_not_found"), std::string::npos) << path;
  }
  EXPECT_EQ(shown("/v1/modelsx").head.status, 404);
  EXPECT_EQ(ask(call_of("{}", "/v1/models/ember-nano/cpu")).head.status, 405);
}

TEST_F(ClientProxy, ServesThisMachinesProgramsOnly) {
  EXPECT_FALSE(local_proxy::start(*client, "0.0.0.0:0"));
  EXPECT_FALSE(local_proxy::start(*client, "not an address"));
  auto call = call_of("{}");
  call.fields = {{"Origin", "https://page.example"}};
  EXPECT_EQ(ask(call).head.status, 403);
  http_test::client stranger(proxy->bound()[0].address);
  EXPECT_EQ(stranger
                .ask("POST /v1/completions HTTP/1.1\r\nHost: evil.example:80\r\n"
                     "Content-Length: 2\r\n\r\n{}")
                .status,
            403);
  EXPECT_EQ(ask(call_of("{}", "/v1/embeddings")).head.status, 404);
  call = call_of("{}");
  call.method = "PUT";
  EXPECT_EQ(ask(call).head.status, 405);
  EXPECT_EQ(cluster.asked, 0u);
  EXPECT_EQ(ask("{}").head.status, 200);
}

TEST_F(ClientProxy, TakesInNoMoreThanItCanAnswer) {
  proxy = serve(1);
  std::latch go(1);
  cluster.refuse = [&](const inner_sealed&, const node_key&) -> std::optional<inner_problem> {
    go.wait();
    return {};
  };
  std::vector<std::thread> threads;
  std::atomic<int> good{0}, busy{0};
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      auto got = ask("{\"n\":" + std::to_string(i) + "}");
      if (got.head.status == 200)
        ++good;
      else if (++busy == 6)
        go.count_down();
    });
  for (auto& t : threads) t.join();
  EXPECT_GE(good, 1);  // one that runs, and one that waits if the first runs already
  EXPECT_LE(good, 2);
}

TEST_F(ClientProxy, BuysOnATimerAndNotForACall) {
  proxy.reset();
  client.reset();
  client = start({.keeps_stocked = true}, false);
  EXPECT_EQ(client->count().tokens, 8u);
  proxy = serve();
  EXPECT_EQ(ask("{}").head.status, 200);
  EXPECT_EQ(client->count().tokens, 7u);
  EXPECT_TRUE(comes_true([&] { return steady += 1000, client->count().tokens == 15; }));
  steady += restock_within_s;
  std::this_thread::sleep_for(milliseconds(600));
  EXPECT_EQ(client->count().tokens, 15u);  // that is enough
}

TEST(ClientRestocking, IsSomeHoursAfterThereIsLessThanABatch) {
  std::set<uint64_t> times;
  for (int i = 0; i < 100; ++i) {
    restocking r;
    EXPECT_FALSE(r.due(64, 64, 0));
    uint64_t now_s = 1000;
    while (!r.due(63, 64, now_s) && now_s < 1000 + restock_within_s) ++now_s;
    EXPECT_LT(now_s, 1000 + restock_within_s);
    times.insert(now_s);
  }
  EXPECT_GT(times.size(), 90u);
  EXPECT_GT(*times.rbegin() - *times.begin(), restock_within_s / 2);
  restocking r;
  EXPECT_TRUE(r.due(31, 64, 0)) << "it may run out soon";
  EXPECT_TRUE(r.due(0, 1, 0));
  EXPECT_TRUE(r.due(0, 8, 0));
  EXPECT_FALSE(r.due(0, 0, 0)) << "nobody knows the batch";
}

TEST_F(ClientProxy, ClaimsChangeOnATimer) {
  cluster.refuse = [](const inner_sealed&, const node_key&) {
    return inner_problem{503, "not ready", change_word::due};
  };
  EXPECT_EQ(ask("{}").head.status, 503);
  EXPECT_EQ(client->count().open, 3u);
  EXPECT_TRUE(comes_true([&] { return steady += 100, client->count().open == 0; }));
  EXPECT_EQ(client->count().tokens, 8u);
}

/// Blind, for the new key, before their own retires; no call is needed for it.
TEST_F(ClientProxy, ExchangesTokensOfTheKeyBeforeOnATimer) {
  auto again = [&](bool on_a_timer) {
    proxy.reset();
    client.reset();
    client = start({.on_a_timer = on_a_timer}, false);
  };
  auto next_key = [&](size_t i) {
    client.reset();
    cluster.now_s += 1;
    cluster.add_issuer_key(i, cluster.now_s);
  };
  next_key(1);
  again(true);
  EXPECT_EQ(client->count().tokens, 8u);
  size_t open_most = 0;
  EXPECT_TRUE(comes_true([&] {
    steady += 60;
    std::lock_guard guard(cluster.lock);
    open_most = std::max(open_most, client->count().open);
    return cluster.claims.size() == 8 && client->count().tokens == 8;
  }));
  EXPECT_LE(open_most, 8u);
  client.reset();
  EXPECT_TRUE(cluster.tokens.empty());
  std::set<bytes> claimed(cluster.claims.begin(), cluster.claims.end());
  EXPECT_EQ(claimed.size(), 8u);
  next_key(2);
  cluster.now_s += 1;
  cluster.log_issuer();  // the first key is not among them any more
  again(false);
  EXPECT_EQ(client->count().tokens, 8u);
  proxy = serve();
  EXPECT_EQ(ask("{}").head.status, 200);
}

TEST(ClientProxyBody, LosesItsLabelsAndNothingElse) {
  auto* memory = std::pmr::get_default_resource();
  auto is = [&](std::string_view in) {
    auto out = without_labels(in, memory);
    return out ? std::string(*out) : out.why().text;
  };
  EXPECT_EQ(is("{}"), "{}");
  EXPECT_EQ(is(R"({ "a" : "\u0041\"" , "user":"x", "b":[ {"user":1} ] })"),
            R"({"a":"\u0041\"","b":[ {"user":1} ]})");
  EXPECT_EQ(is(R"({"us\u0065r":"x"})"), "{}");
  EXPECT_EQ(is("[]"), "the body is no JSON object");
  EXPECT_TRUE(is("{").starts_with("the body is no JSON"));
}

}  // namespace
}  // namespace lethe

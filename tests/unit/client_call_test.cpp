// One call from the draw to the receipt; each lie on the way has an error of its own.
#include "runtime/client/private_client.hpp"
#include "tests/unit/client_cluster.hpp"

namespace lethe {
namespace {

using namespace test;

/// Keeps what a node answers.
struct kept_answer final : inner_sink {
  bool head(uint32_t s, std::span<const bhttp_field> fields) override {
    status = s;
    for (const auto& f : fields)
      if (f.name == "content-type") type = f.value;
    return true;
  }
  bool content(std::string_view piece) override {
    body += piece;
    ++pieces;
    return !stop_at || pieces < stop_at;
  }
  uint32_t status = 0, pieces = 0, stop_at = 0;
  std::string type, body;
};

struct ClientCall : ::testing::Test {
  fake_cluster cluster;
  client_home home{cluster};
  uint64_t steady = 1000;
  std::unique_ptr<private_client> client = start();
  kept_answer got;
  std::vector<check_step> steps;

  std::unique_ptr<private_client> start(uint32_t batches = 1) {
    auto made = private_client::start(home.file(), {.now_s = [this] { return cluster.now_s; },
                                                    .steady_s = [this] { return steady; },
                                                    .on_a_timer = false,
                                                    .redraw_wait_ms = 0});
    EXPECT_TRUE(made) << made.end.why.text;
    if (!made) return nullptr;
    for (; batches > 0; --batches) EXPECT_EQ(*(*made)->buy(), 8u);
    return std::move(*made);
  }
  private_answer call(std::string_view body = R"({"model":"m","messages":[]})",
                      bool claim_at_once = false) {
    got = {};
    steps.clear();
    return client->call({.path = "/v1/chat/completions",
                         .body = body,
                         .sink = got,
                         .claim_at_once = claim_at_once,
                         .observer = [this](const check_step& s) { steps.push_back(s); }});
  }
  /// The first step that failed, and why.
  ::testing::AssertionResult refused_at(const private_answer& a, call_fault kind,
                                        std::string_view step, std::string_view why) {
    if (a) return ::testing::AssertionFailure() << "was believed";
    auto bad = std::ranges::find(steps, false, &check_step::ok);
    if (a.fault != kind || bad == steps.end() || bad->name != step ||
        a.why.text.find(why) == std::string::npos)
      return ::testing::AssertionFailure()
             << int(a.fault) << " at " << (bad == steps.end() ? "" : bad->name) << ": "
             << a.why.text;
    return ::testing::AssertionSuccess();
  }
};

TEST_F(ClientCall, AnswersAndProves) {
  cluster.says.pieces = {"{\"id\":", "\"1\"}"};
  auto a = call();
  ASSERT_TRUE(a) << a.why.text;
  EXPECT_EQ(got.status, 200u);
  EXPECT_EQ(got.type, "application/json");
  EXPECT_EQ(got.body, "{\"id\":\"1\"}");
  ASSERT_TRUE(a.proof);
  EXPECT_EQ(a.proof->bytes_wiped, 4096u);
  EXPECT_EQ(a.draws, 1u);
  EXPECT_EQ(cluster.bodies, std::vector<std::string>{R"({"model":"m","messages":[]})"});
  EXPECT_EQ(cluster.paths[0], "/v1/chat/completions");
  EXPECT_EQ(client->count().tokens, 7u);
  EXPECT_EQ(client->count().open, 0u);
  std::vector<std::string> names;
  for (const auto& s : steps) names.push_back(s.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"gateway keys", "log head", "logged keys", "shape", "roster",
                                      "exposure", "draw", "token", "seal", "answer", "receipt"}));
}

TEST_F(ClientCall, StreamsThePiecesAsTheyCome) {
  cluster.says = {.type = "text/event-stream", .pieces = {"data: 1\n\n", "data: 2\n\n"}};
  ASSERT_TRUE(call());
  EXPECT_EQ(got.type, "text/event-stream");
  EXPECT_EQ(got.body, "data: 1\n\ndata: 2\n\n");
}

TEST_F(ClientCall, PassesOnWhatANodeRefuses) {
  cluster.says = {.status = 400, .pieces = {"{\"error\":{}}"}};
  auto a = call();
  ASSERT_TRUE(a) << a.why.text;
  EXPECT_EQ(got.status, 400u);
  EXPECT_TRUE(a.proof);
}

TEST_F(ClientCall, BodiesOfOneBucketAreOfOneSize) {
  ASSERT_TRUE(call("{\"a\":1}"));
  ASSERT_TRUE(call("{\"a\":\"" + std::string(800, 'x') + "\"}"));
  ASSERT_TRUE(call("{\"a\":\"" + std::string(1100, 'x') + "\"}"));
  EXPECT_EQ(cluster.sealed_sizes[0], cluster.sealed_sizes[1]);
  EXPECT_EQ(cluster.sealed_sizes[2] - cluster.sealed_sizes[0], 3072u);  // the next bucket
}

TEST_F(ClientCall, RefusesABodyAboveTheLastBucketWithoutADraw) {
  auto a = call(std::string(20'000, 'x'));
  EXPECT_TRUE(refused_at(a, call_fault::request, "seal", "the policy takes 16384"));
  EXPECT_EQ(a.draws, 0u);
  EXPECT_EQ(client->count().tokens, 8u);
}

TEST_F(ClientCall, TheRelaySeesNothingOfIt) {
  ASSERT_TRUE(call(R"({"prompt":"secret words"})"));
  EXPECT_NE(cluster.bodies[0].find("secret words"), std::string::npos);  // the node does
  const std::string_view nonce = as_text(cluster.tokens[0].nonce);
  for (const auto& b : cluster.bodies_outside) {
    EXPECT_EQ(b.find("secret"), std::string::npos);
    EXPECT_EQ(b.find("/v1/"), std::string::npos);
    EXPECT_EQ(b.find(nonce), std::string::npos);
  }
  std::set<std::string> names;
  for (const auto& f : cluster.fields_outside) names.insert(f.substr(0, f.find(':')));
  EXPECT_EQ(names,
            (std::set<std::string>{"Content-Type", "Host", "Incremental", "Transfer-Encoding"}));
}

TEST_F(ClientCall, SaysWhenTheWalletIsEmptyAndCountsNoDraw) {
  client = nullptr;
  fs::remove(home.folder / "wallet");
  fs::remove(home.folder / "wallet.journal");
  client = start(0);
  for (int i = 0; i < 5; ++i) {
    auto a = call();
    EXPECT_TRUE(refused_at(a, call_fault::tokens, "token", "the wallet has none"));
    EXPECT_EQ(a.draws, 0u);
  }
  ASSERT_EQ(*client->buy(), 8u);
  EXPECT_TRUE(call());
}

TEST_F(ClientCall, RedrawsWhileNodesAreFullAndNoMoreOftenThanThePolicySays) {
  cluster.refuse = [&](const inner_sealed& s, const node_key& n) {
    return node_full(cluster, s, n);
  };
  auto a = call();
  EXPECT_TRUE(refused_at(a, call_fault::busy, "exposure", "full; exposure: nodes were drawn 3"));
  EXPECT_EQ(a.draws, 3u);
  EXPECT_EQ(cluster.asked, 3u);
  EXPECT_EQ(client->count().open, 3u);
  // The same body again is refused before anything leaves; another one is not.
  EXPECT_TRUE(refused_at(call(), call_fault::exposure, "exposure", "drawn 3 times"));
  EXPECT_EQ(cluster.asked, 3u);
  cluster.refuse = {};
  EXPECT_TRUE(call("{\"other\":1}"));
  steady += 600;
  EXPECT_TRUE(call());
}

TEST_F(ClientCall, ARedrawIsANewRequestWithANewToken) {
  uint32_t refusals = 0;
  cluster.refuse = [&](const inner_sealed& s, const node_key& n) -> std::optional<inner_problem> {
    return refusals++ == 0 ? node_full(cluster, s, n) : std::nullopt;
  };
  auto a = call();
  ASSERT_TRUE(a) << a.why.text;
  EXPECT_EQ(a.draws, 2u);
  ASSERT_EQ(cluster.tokens.size(), 2u);
  EXPECT_NE(cluster.tokens[0].nonce, cluster.tokens[1].nonce);
}

TEST_F(ClientCall, ClaimsItsChange) {
  cluster.refuse = [&](const inner_sealed&, const node_key&) {
    return inner_problem{503, "not ready", change_word::due};
  };
  EXPECT_FALSE(call());
  EXPECT_EQ(client->count().tokens, 5u);
  cluster.claims_too_early = 1;
  auto done = client->claim_pending();
  EXPECT_EQ(done.later, 1u);
  EXPECT_EQ(done.changed, 2u);
  done = client->claim_pending();
  EXPECT_EQ(done.changed, 1u);
  EXPECT_EQ(client->count().tokens, 8u);
  EXPECT_EQ(client->count().open, 0u);
  EXPECT_EQ(cluster.claims.size(), 4u);
  cluster.refuse = {};
  EXPECT_TRUE(call("{\"with\":\"change\"}"));
}

TEST_F(ClientCall, ClaimsAtOnceWhereItIsTold) {
  uint32_t refusals = 0;
  cluster.refuse = [&](const inner_sealed&, const node_key&) -> std::optional<inner_problem> {
    if (refusals++ == 0) return inner_problem{404, "gone", change_word::due};
    return {};
  };
  ASSERT_TRUE(call("{}", true));
  EXPECT_EQ(client->count().tokens, 7u);
  EXPECT_EQ(client->count().open, 0u);
  EXPECT_EQ(std::ranges::count(steps, std::string("change"), &check_step::name), 1);
}

TEST_F(ClientCall, ClaimsAfterItsProcessDied) {
  cluster.refuse = [&](const inner_sealed&, const node_key&) {
    return inner_problem{503, "not ready", change_word::due};
  };
  EXPECT_FALSE(call());
  client = nullptr;
  client = start(0);
  EXPECT_EQ(client->claim_pending().changed, 3u);
  EXPECT_EQ(client->count().tokens, 8u);
}

TEST_F(ClientCall, RefusesChangeWithABadSignature) {
  cluster.refuse = [&](const inner_sealed&, const node_key&) {
    return inner_problem{503, "not ready", change_word::due};
  };
  EXPECT_FALSE(call());
  cluster.cheat.change = [](bytes& signature) { signature[20] ^= std::byte{1}; };
  auto done = client->claim_pending();
  EXPECT_EQ(done.changed, 0u);
  ASSERT_TRUE(done.why);
  EXPECT_NE(done.why->text.find("change: blind signature"), std::string::npos) << done.why->text;
  EXPECT_EQ(client->count().open, 3u);
  cluster.cheat.change = {};
  EXPECT_EQ(client->claim_pending().changed, 3u);
}

TEST_F(ClientCall, NothingIsDueForWhatWasAnswered) {
  got.stop_at = 1;
  cluster.says.pieces = {"a", "b", "c"};
  private_answer a = client->call({.path = "/v1/completions", .body = "{}", .sink = got});
  EXPECT_EQ(a.fault, call_fault::cancelled);
  EXPECT_EQ(client->count().open, 1u);
  auto done = client->claim_pending();
  EXPECT_EQ(done.none_due, 1u);
  EXPECT_EQ(client->count().open, 0u);
  EXPECT_EQ(client->count().tokens, 7u);
}

TEST_F(ClientCall, ATokenThatWasSpentBeforeIsDropped) {
  cluster.refuse = [&](const inner_sealed&, const node_key&) {
    return inner_problem{403, "spent before", change_word::none};
  };
  EXPECT_TRUE(refused_at(call(), call_fault::tokens, "refusal", "spent before"));
  EXPECT_EQ(cluster.asked, 1u);
  EXPECT_EQ(client->count().tokens, 7u);
  EXPECT_EQ(client->count().open, 0u);
}

/// Nothing on this machine remembers a later one; the gateway does.
TEST_F(ClientCall, AWalletThatIsBroughtBackWholeIsTakenAndShowsSpentTokens) {
  const fs::path kept = home.folder / "kept";
  auto copy = [](const fs::path& from, const fs::path& to) {
    fs::create_directories(to);
    for (const char* name : {"wallet", "wallet.journal"})
      fs::copy_file(from / name, to / name, fs::copy_options::overwrite_existing);
  };
  client = nullptr;
  copy(home.folder / "", kept);
  client = start(0);
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(call(fmt::format("{{\"n\":{}}}", i)));
  client = nullptr;
  copy(kept, home.folder / "");
  client = start(0);
  EXPECT_EQ(client->count().tokens, 8u);
  EXPECT_TRUE(refused_at(call(), call_fault::tokens, "refusal", "spent before"));
  EXPECT_EQ(client->count().tokens, 7u);
}

TEST_F(ClientCall, ATokenThatWasRefusedUnspentIsChanged) {
  cluster.refuse = [&](const inner_sealed&, const node_key&) {
    return inner_problem{.status = 503, .title = "too many are being spent"};
  };
  EXPECT_TRUE(refused_at(call(), call_fault::busy, "refusal", "not ready"));
  EXPECT_EQ(client->count().tokens, 7u);
  EXPECT_EQ(client->claim_pending().changed, 1u);
  EXPECT_EQ(client->count().tokens, 8u);
  EXPECT_EQ(client->count().open, 0u);
}

TEST_F(ClientCall, AnswersNoChallengeButTheLoggedOne) {
  cluster.cheat.challenge_other = true;
  cluster.refuse = [&](const inner_sealed&, const node_key&) {
    auto demand = token_demand{cluster_challenge, {}, {}};
    if (cluster.cheat.challenge_other) demand.challenge.origin = "tag-of-one-client";
    return inner_problem{.status = 401, .title = "a token", .challenge = write_demand(demand)};
  };
  EXPECT_TRUE(
      refused_at(call(), call_fault::trust, "refusal", "another challenge than the logged"));
  cluster.cheat.challenge_other = false;
  EXPECT_TRUE(refused_at(call(), call_fault::tokens, "refusal", "does not take it"));
  EXPECT_EQ(client->count().tokens, 6u);
}

TEST_F(ClientCall, NothingIsDrawnAnewWithoutTheWordThatChangeIsDue) {
  for (auto word : {change_word::none, change_word::absent}) {
    cluster.refuse = [&](const inner_sealed&, const node_key&) {
      return inner_problem{503, "not now", word};
    };
    const uint32_t before = cluster.asked;
    EXPECT_TRUE(refused_at(call("{}"), call_fault::busy, "refusal", "not ready"));
    EXPECT_EQ(cluster.asked, before + 1);
  }
}

TEST_F(ClientCall, RefusesANodesRefusalThatWasChangedOrIsAStrangers) {
  cluster.refuse = [&](const inner_sealed& s, const node_key& n) {
    return node_full(cluster, s, n);
  };
  cluster.cheat.refusal = [](bytes& r) { r[3] ^= std::byte{1}; };
  EXPECT_TRUE(refused_at(call(), call_fault::trust, "refusal", "its signature is not the node's"));
  EXPECT_EQ(cluster.asked, 1u);  // and is not made to draw again by it
  // By another node: its signature is good, but not of a node that was drawn.
  auto stranger = *node_key::make();
  cluster.cheat.refusal = [&](bytes& r) {
    node_refusal of{.epoch = cluster.epoch(), .reason = refusal_reason::full};
    std::ranges::copy(bytes_view(r).first(32), of.binding.begin());
    r = copy_of(sign_refusal(stranger, of));
  };
  EXPECT_TRUE(refused_at(call(), call_fault::trust, "refusal", "its signature is not the node's"));
  EXPECT_EQ(cluster.asked, 2u);
}

/// Each node refuses the first request that it gets, and those words are shown for later ones.
TEST_F(ClientCall, RefusesANodesRefusalOfAnotherRequest) {
  std::map<hash32, inner_problem> said;
  cluster.refuse = [&](const inner_sealed& s, const node_key& n) {
    return said.try_emplace(n.published().id, *node_full(cluster, s, n)).first->second;
  };
  auto a = call("{\"a\":1}");
  if (a.fault == call_fault::busy) a = call("{\"b\":1}");  // three draws of three nodes
  EXPECT_TRUE(refused_at(a, call_fault::trust, "refusal", "refusal: of another request"));
  EXPECT_EQ(cluster.asked, said.size() + 1);
}

TEST_F(ClientCall, RefusesANodesRefusalOfAnotherEpochOrReason) {
  auto shown = [&](uint32_t epoch, refusal_reason why) {
    cluster.refuse = [&cluster = cluster, epoch, why](const inner_sealed& s, const node_key& n) {
      auto full = *node_full(cluster, s, n);
      auto binding = sealed_message::parse(s.message)->binding(s.token.hash());
      const auto word = sign_refusal(n, {binding, epoch, why});
      write_base64url(word, full.refusal);
      return full;
    };
    return call();
  };
  EXPECT_TRUE(refused_at(shown(cluster.epoch() + 1, refusal_reason::full), call_fault::trust,
                         "refusal", "of epoch 2; the request is of 1"));
  EXPECT_TRUE(refused_at(shown(cluster.epoch(), refusal_reason::leaving), call_fault::trust,
                         "refusal", "did not say that it is full"));
  EXPECT_EQ(cluster.asked, 2u);
  EXPECT_TRUE(refused_at(shown(cluster.epoch(), refusal_reason::full), call_fault::busy, "exposure",
                         "is full; exposure"));  // the control
}

/// Else whoever says it could have redraws made until a node comes that it likes.
TEST_F(ClientCall, NothingIsDrawnAnewForAFullNodeWithoutThatNodesWord) {
  cluster.refuse = [&](const inner_sealed&, const node_key&) {
    return inner_problem{429, "the node is full", change_word::due};
  };
  for (uint32_t asked = 1; asked <= 3; ++asked) {
    EXPECT_TRUE(refused_at(call("{}", asked == 3), call_fault::busy, "refusal",
                           "shows no word of that node"));
    EXPECT_EQ(cluster.asked, asked);
  }
  EXPECT_EQ(client->count().open, 2u);  // the third was claimed at once
  EXPECT_EQ(client->claim_pending().changed, 2u);
  EXPECT_TRUE(refused_at(call("{}"), call_fault::exposure, "exposure", "drawn 3 times"));
  EXPECT_EQ(cluster.asked, 3u);
}

TEST_F(ClientCall, SaysWhatTheGatewaySaysOfABadRequest) {
  cluster.refuse = [&](const inner_sealed&, const node_key&) {
    return inner_problem{400, "the seal does not open, or came again", change_word::none};
  };
  EXPECT_TRUE(refused_at(call(), call_fault::gateway, "refusal",
                         "400 to a sealed request: \"the seal does not open, or came again\""));
  const std::string rude = "\\u001b[2J" + std::string(500, 'x');
  cluster.refuse = [&](const inner_sealed&, const node_key&) {
    return inner_problem{400, rude.c_str(), change_word::none};
  };
  auto a = call();
  EXPECT_NE(a.why.text.find("\"?[2Jxx"), std::string::npos) << a.why.text;
  EXPECT_LT(a.why.text.size(), 200u);
}

TEST_F(ClientCall, RefusesAnAnswerOfANodeThatWasNotAsked) {
  cluster.cheat.node_not_asked = true;
  EXPECT_TRUE(refused_at(call(), call_fault::answer, "answer", "opens for none of the 1 nodes"));
  EXPECT_TRUE(got.body.empty());
}

TEST(ClientCallOfTwo, EitherMayAnswerAndTheReceiptIsItsOwn) {
  fake_cluster cluster(3, [](log_policy& p) { p.candidates = 2; });
  cluster.accepts.candidates_max = 2;
  client_home home{cluster};
  auto client = private_client::start(
      home.file(),
      {.now_s = [&] { return cluster.now_s; }, .on_a_timer = false, .redraw_wait_ms = 0});
  ASSERT_TRUE(client) << client.end.why.text;
  ASSERT_TRUE((*client)->buy());
  for (size_t who : {0, 1}) {
    cluster.answers = who;
    kept_answer got;
    std::string said;
    auto ask = [&](std::string_view body) {
      return (*client)->call({.path = "/v1/chat/completions",
                              .body = body,
                              .sink = got,
                              .observer = [&](const check_step& s) { said += s.detail + "\n"; }});
    };
    cluster.cheat.node_not_asked = true;
    auto lied = ask(who ? "{\"a\":1}" : "{\"b\":1}");
    EXPECT_EQ(lied.fault, call_fault::answer) << "of neither of them";
    EXPECT_FALSE(lied.proof);
    cluster.cheat.node_not_asked = false;
    auto answer = ask("{}");
    ASSERT_TRUE(answer) << answer.why.text;
    EXPECT_TRUE(answer.proof);
    EXPECT_EQ(answer.draws, 1u);
    EXPECT_NE(said.find("k = 2 promises no more"), said.npos) << said;
    EXPECT_NE(said.find("2 nodes each"), said.npos) << said;
  }
}

TEST_F(ClientCall, RefusesAnAnswerThatIsCutOff) {
  cluster.says.pieces = {"one", "two"};
  cluster.cheat.answer = [](std::vector<bytes>& chunks) { chunks.resize(2); };
  EXPECT_TRUE(refused_at(call(), call_fault::answer, "receipt", "sealed"));
  EXPECT_EQ(got.body, "one");
  EXPECT_EQ(client->count().open, 1u);
}

/// Change for it would be an answer for nothing.
TEST_F(ClientCall, AWholeAnswerWithoutItsProofIsToldAndPaidFor) {
  cluster.cheat.cut_sealed = true;
  auto is_told = [&](const private_answer& answer, const char* step, const char* what) {
    return refused_at(answer, call_fault::answer, step, what) &&
           answer.why.text.starts_with("the answer is whole, but not proven: ");
  };
  EXPECT_TRUE(is_told(call(), "receipt", "sealed"));
  cluster.cheat = {};
  cluster.cheat.cut_outside = true;
  EXPECT_TRUE(is_told(call("{}"), "answer", "cut off"));
  EXPECT_EQ(client->count().open, 0u);
}

TEST_F(ClientCall, RefusesChunksInAnotherOrder) {
  cluster.says.pieces = {"one", "two", "three"};
  cluster.cheat.answer = [](std::vector<bytes>& chunks) { std::swap(chunks[2], chunks[3]); };
  EXPECT_TRUE(refused_at(call(), call_fault::answer, "answer", "chunk"));
  EXPECT_EQ(got.body.find("three"), std::string::npos);
  cluster.cheat.answer = [](std::vector<bytes>& chunks) { chunks[2] = chunks[3]; };
  EXPECT_TRUE(refused_at(call("{}"), call_fault::answer, "answer", "chunk"));
  cluster.cheat.answer = [](std::vector<bytes>& chunks) { chunks.erase(chunks.begin() + 2); };
  EXPECT_TRUE(refused_at(call("{\"a\":1}"), call_fault::answer, "answer", "chunk"));
}

TEST_F(ClientCall, RefusesChunksOfAnotherSizeThanIsLogged) {
  for (uint32_t other : {256u, 1024u, 0u}) {
    cluster.cheat.chunk_bytes = other;
    EXPECT_TRUE(refused_at(call("{\"n\":" + std::to_string(other) + "}"), call_fault::answer,
                           "answer", "the policy has 512 for every chunk"));
  }
  cluster.cheat.chunk_bytes = 512;
  EXPECT_TRUE(call("{}"));
}

/// What an opener can't see before the end, and the network could: chunks that were left out, and
/// their number with them.
TEST_F(ClientCall, RefusesAnAnswerThatIsCutAtAnyChunk) {
  cluster.cheat.padding = 5;
  for (size_t kept = 0; kept < 8; ++kept) {
    cluster.cheat.answer = [&](std::vector<bytes>& chunks) { chunks.resize(1 + kept); };
    EXPECT_FALSE(call("{\"n\":" + std::to_string(kept % 7) + "}")) << kept;
    if (client->count().tokens < 2) {
      ASSERT_TRUE(client->buy());
    }
  }
  cluster.cheat.answer = [](std::vector<bytes>& chunks) { EXPECT_EQ(chunks.size(), 1u + 8); };
  EXPECT_TRUE(call("{\"n\":10}"));
}

TEST_F(ClientCall, PaddingIsNoPartOfTheAnswer) {
  cluster.says.pieces = {"a", "b", "c"};
  cluster.cheat.padding = 100;
  auto a = call();
  ASSERT_TRUE(a) << a.why.text;
  EXPECT_EQ(got.body, "abc");
}

TEST_F(ClientCall, RefusesAReceiptOfAnotherRequest) {
  struct {
    std::function<void(receipt&)> says;
  } cases[] = {
      {[](receipt& r) { r.request_hash[0] ^= std::byte{1}; }},
      {[](receipt& r) { r.token_hash[0] ^= std::byte{1}; }},
      {[](receipt& r) { r.epoch += 1; }},
  };
  int n = 0;
  for (const auto& c : cases) {
    cluster.cheat.receipt_says = c.says;
    auto a = call("{\"n\":" + std::to_string(n++) + "}");
    EXPECT_TRUE(refused_at(a, call_fault::answer, "receipt", "receipt: it is for another request"));
    EXPECT_FALSE(a.proof);
  }
}

TEST_F(ClientCall, RefusesAReceiptOfAnotherReleaseThanIsLogged) {
  hash32 release = sha256({}), other{};
  cluster.cheat.receipt_says = [&](receipt& r) { r.release = other; };
  EXPECT_TRUE(call());  // the log says none
  cluster.log.add({log_kind::release, 1, {release.begin(), release.end()}});
  cluster.now_s += 60;
  cluster.set_roster(1);
  client = nullptr;
  client = start(0);
  EXPECT_TRUE(refused_at(call("{}"), call_fault::answer, "receipt",
                         "receipt: the node runs another release than the log has"));
  other = release;
  EXPECT_TRUE(call("{\"a\":1}"));
}

TEST_F(ClientCall, DrawsFromTheNextRosterWhenTheNodeIsGone) {
  ASSERT_TRUE(call());
  cluster.now_s += 60;
  cluster.set_roster(3);  // the client does not know yet
  auto a = call("{}");
  ASSERT_TRUE(a) << a.why.text;
  EXPECT_EQ(a.draws, 2u);
}

TEST_F(ClientCall, AsksAgainWithTheGatewaysNewKeyAndTheSameToken) {
  ASSERT_TRUE(call());
  cluster.forget_keys();
  auto a = call("{}");
  ASSERT_TRUE(a) << a.why.text;
  EXPECT_EQ(a.draws, 1u);
  EXPECT_EQ(cluster.tokens.size(), 2u);
  EXPECT_EQ(client->count().tokens, 6u);
}

TEST_F(ClientCall, ARelayThatIsAwayCostsNeitherTokensNorDraws) {
  auto text = cluster.trust_text_of();
  const auto relay = text.find(cluster.url());
  auto away = text;
  away.replace(relay, cluster.url().size(), "http://127.0.0.1:1");
  auto trust = *trust_file::parse(away, home.file());
  auto http = *http_client::start({}, {});
  oblivious_channel nowhere(*http, trust.relays, trust.origin),
      there(*http, home.trust().relays, trust.origin);
  client = nullptr;
  auto tokens = *wallet::open(trust.wallet);
  auto view = *cluster_view::open(trust, there);
  ASSERT_TRUE(view->refresh(cluster.now_s));
  exposure_budget exposure;
  call_parts parts{*view,
                   nowhere,
                   *tokens,
                   exposure,
                   [this] { return cluster.now_s; },
                   [this] { return steady; },
                   0};
  for (int i = 0; i < 5; ++i) {
    auto a = call_privately(parts, {.path = "/v1/completions", .body = "{}", .sink = got});
    EXPECT_EQ(a.fault, call_fault::relay) << a.why.text;
    EXPECT_EQ(a.draws, 0u);
  }
  EXPECT_EQ(tokens->count().tokens, 8u);
  EXPECT_EQ(tokens->count().open, 0u);
}

TEST_F(ClientCall, ManyCallsAtOnceEachPayOnce) {
  client = nullptr;
  client = start(3);
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      kept_answer mine;
      auto body = "{\"n\":" + std::to_string(t) + "}";
      auto a = client->call({.path = "/v1/completions", .body = body, .sink = mine});
      good += bool(a) && mine.body == "{\"id\":\"1\"}";
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(good, 8);
  std::set<hash32> nonces;
  for (const auto& t : cluster.tokens) nonces.insert(t.nonce);
  EXPECT_EQ(nonces.size(), 8u);
  EXPECT_EQ(client->count().tokens, 24u);
}

TEST_F(ClientCall, BuysOnlyWhatTheLoggedKeySigned) {
  cluster.cheat.batch = [](bytes& answer) { answer.back() ^= std::byte{1}; };
  auto bought = client->buy();
  ASSERT_FALSE(bought);
  EXPECT_EQ(bought.end.fault, call_fault::trust);
  EXPECT_NE(bought.end.why.text.find("1 of 8 signatures"), std::string::npos);
  EXPECT_EQ(client->count().tokens, 15u);
  cluster.cheat.batch = [](bytes& answer) { answer.pop_back(); };
  EXPECT_EQ(client->buy().end.fault, call_fault::tokens);
  cluster.cheat = {};
  put_file(home.folder / "account.secret", as_bytes("another"));
  bought = client->buy();
  EXPECT_NE(bought.end.why.text.find("issuer: it does not know this account"), std::string::npos);
  EXPECT_EQ(client->count().tokens, 15u);
}

TEST_F(ClientCall, DropsTokensWhenTheirKeyRetires) {
  cluster.now_s += 1;
  cluster.add_issuer_key(1, cluster.now_s);
  client = nullptr;
  client = start(1);
  EXPECT_EQ(client->count().tokens, 16u);
  cluster.add_issuer_key(2, cluster.now_s + 1);
  cluster.now_s += 2;
  cluster.log_issuer();  // the current key and the one before it
  client = nullptr;
  client = start(0);
  EXPECT_EQ(client->count().tokens, 8u);
}

TEST_F(ClientCall, ShowsNoTokenOfAKeyThatTooFewBoughtUnder) {
  client = nullptr;
  cluster.accepts.buyers_min = 30;
  put_file(home.file(), as_bytes(cluster.trust_text_of()));
  cluster.now_s += 1;
  cluster.buyers = 20;
  cluster.add_issuer_key(1, cluster.now_s);
  client = start(0);
  EXPECT_EQ(client->count().tokens, 0u) << "what is left may not be shown";
  const auto refused = call();
  EXPECT_EQ(refused.fault, call_fault::tokens);
  EXPECT_NE(refused.why.text.find("8 are of a key that fewer accounts bought under"),
            std::string::npos)
      << refused.why.text;
  EXPECT_EQ(refused.draws, 0u);
  EXPECT_TRUE(cluster.tokens.empty());
  EXPECT_EQ(*client->buy(), 8u);
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(call("{\"n\":" + std::to_string(i) + "}"));
  EXPECT_FALSE(call());
  for (const auto& t : cluster.tokens) EXPECT_EQ(t.key_id, key_of_test(1).published().id());
  client = nullptr;
  cluster.buyers = 30;
  cluster.log_issuer();
  client = start(0);
  EXPECT_TRUE(call()) << "as many as are wanted";
}

}  // namespace
}  // namespace lethe

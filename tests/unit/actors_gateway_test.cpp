// The gateway from HTTP to the node and back: what its client is told, and what becomes of the
// token, whatever goes wrong and whenever.
#include <gtest/gtest.h>

#include "tests/unit/gateway_house.hpp"

namespace lethe::test {
namespace {

using word = change_word;
using state = change_state::what;

struct ending {
  uint32_t status = 200;
  word change = word::absent;
  state is = state::none;
  size_t cancels = 0;
};

/// What is left of a request when its client has gone.
void expect_left(const gateway_house& h, const payment_of_test& p, state is, size_t cancels) {
  EXPECT_TRUE(h.empties()) << "the exchange is still there";
  EXPECT_EQ(h.state_of(p).is, is);
  EXPECT_EQ(h.cancels(), cancels);
}

/// That it ended so, for its client, the store and the node.
void expect_end(const gateway_house& h, asked& a, const payment_of_test& p, const ending& want) {
  auto said = a.end();
  EXPECT_EQ(said.outer, 200);
  EXPECT_EQ(said.status, want.status);
  EXPECT_EQ(said.change(), want.change);
  if (want.status >= 400) {
    EXPECT_EQ(said.fields["content-type"], sealed_names::problem);
    EXPECT_TRUE(said.content.starts_with("{")) << said.content;
  }
  expect_left(h, p, want.is, want.cancels);
}

// --- before anything is spent

TEST(Gateway, AnswersARequestThatIsPaidFor) {
  gateway_house h;
  auto p = pay();
  for (auto form : {ohttp_form::chunked, ohttp_form::whole}) {
    if (form == ohttp_form::whole) p = pay();
    auto a = h.ask(p, form);
    const size_t n = form == ohttp_form::chunked ? 1 : 2;
    auto id = h.dispatched(n);
    h.at->read([&] {
      const auto& s = h.at->submits[n - 1];
      EXPECT_EQ(s.token, copy_of(p.token.to_bytes()));
      EXPECT_EQ(h.at->places[n - 1].node, copy_of(h.nodes[0]->published().id));
    });
    h.answer(id, "first, ");
    if (form == ohttp_form::chunked) {
      EXPECT_EQ(a.content(7), "first, ");
    }
    EXPECT_EQ(h.state_of(p).is, state::open);
    h.answer(id, "last", true);
    auto said = a.end();
    EXPECT_EQ(said.content, "first, last");
    EXPECT_EQ(said.fields["content-type"], sealed_names::response);
    expect_left(h, p, state::delivered, 0);
  }
  EXPECT_EQ(h.count("answered"), 2u);
}

TEST(Gateway, WithoutATokenNothingIsSpentAndItIsSaidWhichOneIsWanted) {
  gateway_house h;
  const bhttp_field type{"content-type", sealed_names::request};
  auto said = h.ask("POST", sealed_names::sealed_path, {&type, 1}, "sealed").end();
  EXPECT_EQ(said.status, 401u);
  EXPECT_EQ(said.change(), word::absent);
  auto wanted = read_demands(said.fields["www-authenticate"]);
  ASSERT_TRUE(wanted && wanted->size() == 1);
  EXPECT_EQ(wanted->front().challenge, a_challenge);
  EXPECT_EQ(wanted->front().key, key_of_test(0).published().spki());
  EXPECT_TRUE(h.empties());
}

TEST(Gateway, ATokenThatIsNotGoodHereIsNotSpent) {
  gateway_house h;
  auto other = a_challenge;
  other.origin = "elsewhere.example";
  payment_of_test wrong_challenge{token_under(key_of_test(0), other.digest()), pay().change};
  payment_of_test unknown_key{token_under(key_of_test(2)), pay().change};
  payment_of_test key_to_come{token_under(key_of_test(1)), pay().change};
  auto bad_signature = pay();
  bad_signature.token.signature[7] ^= std::byte{1};
  for (const auto& p : {wrong_challenge, unknown_key, key_to_come, bad_signature}) {
    auto a = h.ask(p);
    expect_end(h, a, p, {.status = 401});
  }
  EXPECT_TRUE(h.at->places.empty());
  auto good = pay();
  auto a = h.ask(good);
  EXPECT_NE(h.wait_place(), 0u) << "or this test could not fail";
}

TEST(Gateway, WhatIsNotFormedRightIsNotSpent) {
  gateway_house h;
  auto p = pay();
  auto not_sealed = h.ask_sealed(p, "no seal");
  expect_end(h, not_sealed, p, {.status = 400});
  auto too_many = h.ask(p, ohttp_form::chunked, 2);
  expect_end(h, too_many, p, {.status = 400});
  payment_of_test change_of_another_key{p.token, change_request(key_of_test(1).published())};
  auto wrong_change = h.ask(change_of_another_key);
  expect_end(h, wrong_change, p, {.status = 400});
  auto no_path = h.look("/nothing");
  EXPECT_EQ(no_path.end().status, 404u);
}

// --- spending

TEST(Gateway, ATokenIsSpentOnceWhateverCameOfIt) {
  gateway_house h;
  auto p = pay();
  auto first = h.ask(p);
  h.refuse(h.wait_place(), schema::Refusal::FULL);
  expect_end(h, first, p, {429, word::due, state::due});
  auto second = h.ask(p);
  expect_end(h, second, p, {403, word::none, state::due});
  EXPECT_EQ(h.at->places.size(), 1u);
}

TEST(Gateway, WhenTheStoreFailsChangeIsDueAndAClaimBringsIt) {
  gateway_house h;
  h.gate->write([&] { h.gate->spends_fail = true; });
  auto p = pay();
  auto a = h.ask(p);
  expect_end(h, a, p, {503, word::due, state::none});
  EXPECT_TRUE(h.at->places.empty());
  h.gate->write([&] { h.gate->spends_fail = false; });
  EXPECT_EQ(h.claim(p).end().status, 200u);
}

TEST(Gateway, WhenTheStoreIsBusyNothingIsSpent) {
  gateway_house h({.bounds = {.waiting_max = 0}});
  auto p = pay();
  auto said = h.ask(p).end();
  EXPECT_EQ(said.status, 503u);
  EXPECT_EQ(said.change(), word::absent);
  EXPECT_TRUE(h.at->places.empty());
}

TEST(Gateway, AnOutcomeThatCannotBeStoredIsStoredLater) {
  gateway_house h;
  auto p = pay();
  auto a = h.ask(p);
  auto id = h.dispatched();
  h.gate->write([&] { h.gate->settles_fail = true; });
  h.answer(id, "all", true);
  expect_end(h, a, p, {200, word::absent, state::open});
  h.gate->write([&] { h.gate->settles_fail = false; });
  EXPECT_TRUE(eventually([&] { return h.state_of(p).is == state::delivered; }));
}

TEST(Gateway, AnOutcomeThatIsLostIsSaidAndIsDueAfterTheNextStart) {
  gateway_house h({.bounds = {.settles_max = 0}});
  auto p = pay();
  auto a = h.ask(p);
  h.answer(h.dispatched(), "all", true);
  expect_end(h, a, p, {200, word::absent, state::open});
  EXPECT_EQ(h.note(), "outcomes of requests are being lost");
  h.die();
  h.start();
  EXPECT_EQ(h.state_of(p).is, state::due);
}

// --- placing

TEST(Gateway, WhereTheNodeIsNotToBeHadChangeIsDue) {
  const std::pair<schema::Refusal, uint32_t> all[] = {{schema::Refusal::UNKNOWN_NODE, 404},
                                                      {schema::Refusal::FULL, 429},
                                                      {schema::Refusal::LEAVING, 503},
                                                      {schema::Refusal::NOT_READY, 503}};
  gateway_house h;
  size_t n = 0;
  for (auto [why, status] : all) {
    auto p = pay();
    auto a = h.ask(p);
    h.refuse(h.wait_place(++n), why);
    expect_end(h, a, p, {status, word::due, state::due});
  }
  EXPECT_TRUE(h.at->submits.empty());
}

TEST(Gateway, OfTwoCandidatesTheSecondIsAskedWhenTheFirstRefuses) {
  gateway_house h({.candidates = 2});
  auto p = pay();
  auto a = h.ask(p, ohttp_form::chunked, 2);
  auto first = h.wait_place();
  h.refuse(first, schema::Refusal::FULL);
  auto id = h.wait_place(2);
  ASSERT_NE(id, first);  // what the first may still say is nobody's
  h.at->read([&] {
    for (size_t i : {0, 1}) EXPECT_EQ(h.at->places[i].node, copy_of(h.nodes[i]->published().id));
  });
  EXPECT_EQ(h.state_of(p).is, state::open);
  h.place(id);
  h.answer(h.wait_submit(), "the second", true);
  expect_end(h, a, p, {200, word::absent, state::delivered});
}

TEST(Gateway, WhenBothCandidatesRefuseTheLastWordIsTold) {
  gateway_house h({.candidates = 2});
  auto p = pay();
  auto a = h.ask(p, ohttp_form::chunked, 2);
  h.refuse(h.wait_place(), schema::Refusal::FULL);
  h.refuse(h.wait_place(2), schema::Refusal::UNKNOWN_NODE);
  expect_end(h, a, p, {404, word::due, state::due});
}

TEST(Gateway, ASchedulerThatIsSilentIsNotWaitedForForEver) {
  gateway_house h;
  auto p = pay();
  auto a = h.ask(p);
  auto id = h.wait_place();
  h.tick_now();
  EXPECT_EQ(h.count("open"), 1u);
  h.shift_ns += 6'000'000'000;
  h.tick_now();
  expect_end(h, a, p, {503, word::due, state::due});
  h.place(id);  // too late: the place is given back
  h.barrier();
  EXPECT_EQ(h.cancels(), 1u);
  EXPECT_TRUE(h.at->submits.empty());
}

// --- the node

TEST(Gateway, WhatTheNodeRefusesOrLosesIsDueButAWrongSealIsNot) {
  struct loss {
    schema::LossReason why;
    ending want;
  };
  const loss all[] = {
      {schema::LossReason::BAD_SEAL, {400, word::none, state::delivered}},
      {schema::LossReason::ENGINE_FULL, {429, word::due, state::due}},
      {schema::LossReason::STALE, {503, word::due, state::due}},
      {schema::LossReason::ENGINE_LOST, {503, word::due, state::due}},
  };
  gateway_house h;
  size_t n = 0;
  for (const auto& [why, want] : all) {
    auto p = pay();
    auto a = h.ask(p);
    h.lose(h.dispatched(++n), why);
    expect_end(h, a, p, want);
  }
}

TEST(Gateway, AFullNodesSignatureGoesToTheClient) {
  gateway_house h;
  auto p = pay();
  auto a = h.ask(p);
  auto id = h.dispatched();
  auto sealed = h.at->read([&] { return h.at->submits[0].sealed; });
  auto binding = sealed_message::parse(sealed)->binding(p.token.hash());
  h.lose(id, schema::LossReason::ENGINE_FULL,
         sign_refusal(*h.nodes[0], {binding, 1, refusal_reason::full}));
  auto said = a.end();
  EXPECT_EQ(said.status, 429u);
  auto bytes = read_base64url(said.fields[std::string(sealed_names::refusal_field)]);
  ASSERT_TRUE(bytes);
  auto read = verify_refusal(*bytes, h.nodes[0]->published().sigpk, binding);
  ASSERT_TRUE(read) << read.why().text;
  EXPECT_EQ(read->reason, refusal_reason::full);
}

/// A request whose node has said half of its answer, and may have ended before that was heard.
struct half_answered {
  explicit half_answered(bool gone = false) {
    if (gone) h.end_request();
    h.answer(id, "half of ");
    EXPECT_EQ(a.content(8), "half of ");
    h.barrier();
  }
  gateway_house h;
  payment_of_test p = pay();
  asked a = h.ask(p);
  uint64_t id = h.dispatched();
};

TEST(Gateway, AnEngineThatIsLostInMidAnswerCutsItAndChangeIsDue) {
  half_answered x;
  x.h.lose(x.id, schema::LossReason::ENGINE_LOST);
  EXPECT_EQ(x.a.end().status, 0u) << "a cut answer must not look whole";
  expect_left(x.h, x.p, state::due, 0);
}

/// As one that ended before it was watched is found: the reason is unknown, and what it said is
/// still on its way.
TEST(Gateway, TheLastWordsOfANodeThatIsFoundGoneAreHeard) {
  half_answered x(true);
  x.h.answer(x.id, "it", true);
  EXPECT_EQ(x.a.end().content, "half of it");
  expect_left(x.h, x.p, state::delivered, 0);
}

TEST(Gateway, TheLastWordsOfANodeThatIsGoneAreNotWaitedForForEver) {
  half_answered x(true);
  x.h.tick_now();
  EXPECT_EQ(x.h.count("open"), 1u);
  x.h.shift_ns += 6'000'000'000;
  x.h.tick_now();
  EXPECT_EQ(x.a.end().status, 0u);
  expect_left(x.h, x.p, state::due, 0);
}

TEST(Gateway, ALossAfterTheLastPieceIsNoLoss) {
  gateway_house h;
  auto p = pay();
  auto a = h.ask(p);
  auto id = h.dispatched();
  h.door->hold();
  h.answer(id, "all", true);
  EXPECT_EQ(a.end().content, "all");
  h.lose(id, schema::LossReason::ENGINE_LOST);
  h.barrier();
  h.door->let_go();
  expect_left(h, p, state::delivered, 0);
}

TEST(Gateway, TheNodeGetsCreditAsItsClientTakesTheAnswer) {
  gateway_house h;
  auto p = pay();
  auto a = h.ask(p);
  auto id = h.dispatched();
  for (uint32_t i = 0; i < credit_window::batch - 1; ++i) h.answer(id, "piece");
  EXPECT_EQ(a.content(5 * (credit_window::batch - 1)).size(), 5 * (credit_window::batch - 1));
  h.barrier();
  EXPECT_EQ(h.at->read([&] { return h.at->credit; }), 0u);
  h.answer(id, "piece");
  EXPECT_TRUE(h.at->wait([&] { return h.at->credit == credit_window::batch; }));
  h.answer(id, "", true);
  a.end();
}

TEST(Gateway, AnAnswerThatIsTooLargeForOnePieceIsRefusedAndItsNodeMayStop) {
  gateway_house h;
  auto p = pay();
  auto a = h.ask(p, ohttp_form::whole);
  auto id = h.dispatched();
  const std::string piece(30'000, 'x');
  for (size_t n = 0; n <= outer_answer::whole_bytes_max / piece.size(); ++n) h.answer(id, piece);
  EXPECT_EQ(a.end().outer, 502);
  expect_left(h, p, state::delivered, 1);
}

}  // namespace
}  // namespace lethe::test

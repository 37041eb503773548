// The gateway when its client leaves, when it dies itself, when keys and epochs turn, and what it
// says to claims.
#include <gtest/gtest.h>

#include "tests/unit/gateway_house.hpp"

namespace lethe::test {
namespace {

using word = change_word;
using state = change_state::what;

void expect_left(const gateway_house& h, const payment_of_test& p, state is, size_t cancels) {
  EXPECT_TRUE(h.empties()) << "the exchange is still there";
  EXPECT_EQ(h.state_of(p).is, is);
  EXPECT_EQ(h.cancels(), cancels);
}

/// The server knows that so many requests had their last word.
void wait_ends(const gateway_house& h, uint32_t count) {
  EXPECT_TRUE(eventually([&] { return h.door->ends() >= count; }));
}

/// Its token is being spent.
payment_of_test shut_before_spend(gateway_house& h) {
  h.gate->write([&] { h.gate->shut = true; });
  return pay();
}
void wait_spending(const gateway_house& h) {
  EXPECT_TRUE(h.gate->wait([&] { return h.gate->waiting > 0; }));
}
void let_spend(const gateway_house& h) {
  h.gate->write([&] { h.gate->shut = false; });
}

// --- its client leaves

TEST(GatewayLeft, BeforeItsTokenIsSpentChangeIsDue) {
  gateway_house h;
  auto p = shut_before_spend(h);
  auto a = h.ask(p);
  wait_spending(h);
  a.leave();
  EXPECT_TRUE(h.empties());
  let_spend(h);
  EXPECT_TRUE(eventually([&] { return h.state_of(p).is == state::due; }));
  EXPECT_TRUE(h.at->places.empty()) << "nobody waits for that answer";
}

TEST(GatewayLeft, BeforeItIsPlacedChangeIsDueAndThePlaceIsGivenBack) {
  gateway_house h;
  auto p = pay();
  auto a = h.ask(p);
  auto id = h.wait_place();
  a.leave();
  expect_left(h, p, state::due, 0);
  h.place(id);
  h.barrier();
  EXPECT_EQ(h.cancels(), 1u);
  EXPECT_TRUE(h.at->submits.empty());
}

TEST(GatewayLeft, OnceANodeHasItNothingIsDueAndTheNodeMayStop) {
  for (bool answering : {false, true}) {
    gateway_house h;
    auto p = pay();
    auto a = h.ask(p);
    auto id = h.dispatched();
    if (answering) {
      h.answer(id, "half of ");
      EXPECT_EQ(a.content(8), "half of ");
    }
    a.leave();
    expect_left(h, p, state::delivered, 1);
    h.answer(id, "the rest", true);  // which comes too late
    h.lose(id, schema::LossReason::ENGINE_LOST);
    h.barrier();
    EXPECT_EQ(h.state_of(p).is, state::delivered);
  }
}

TEST(GatewayLeft, AtTheLastByteNothingIsDueAndTheNodeHasStopped) {
  gateway_house h;
  auto p = pay();
  auto a = h.ask(p);
  auto id = h.dispatched();
  h.door->hold();
  a.leave();
  wait_ends(h, 1);
  h.answer(id, "all of it", true);
  h.barrier();
  EXPECT_EQ(h.state_of(p).is, state::open) << "the network has not told yet";
  h.door->let_go();
  expect_left(h, p, state::delivered, 0);
}

// --- it dies

TEST(GatewayDies, AnAnswerWhoseLastByteHasLeftCountsOnlyOnceThatIsKnown) {
  for (bool known : {false, true}) {
    gateway_house h;
    auto p = pay();
    auto a = h.ask(p);
    auto id = h.dispatched();
    h.door->hold();
    h.answer(id, "all of it", true);
    EXPECT_EQ(a.end().content, "all of it");
    wait_ends(h, 1);
    h.barrier();
    EXPECT_EQ(h.state_of(p).is, state::open);
    if (known) h.door->let_go();
    if (known) expect_left(h, p, state::delivered, 0);
    h.die();
    h.start();
    EXPECT_EQ(h.state_of(p).is, known ? state::delivered : state::due);
    auto again = h.ask(p).end();
    EXPECT_EQ(again.status, 403u) << "never spent twice";
    EXPECT_EQ(h.claim(p).end().status, known ? 403u : 200u);
  }
}

TEST(GatewayDies, AnAnswerIsCutAndChangeIsDueAfterTheNextStart) {
  for (bool ended : {false, true}) {
    gateway_house h;
    auto p = pay();
    auto a = h.ask(p);
    auto id = h.dispatched();
    h.answer(id, "half of ");
    EXPECT_EQ(a.content(8), "half of ");
    h.door->hold();
    if (ended) {
      h.answer(id, "it", true);
      h.barrier();
    }
    h.die();
    h.start();
    EXPECT_EQ(h.state_of(p).is, state::due);
    EXPECT_EQ(h.claim(p).end().status, 200u);
  }
}

TEST(GatewayDies, ASpendThatWasNotAnsweredIsDueAfterTheNextStart) {
  gateway_house h;
  auto p = pay();
  auto a = h.ask(p);
  h.wait_place();
  h.die();
  EXPECT_EQ(a.end().outer, 0);
  h.start();
  EXPECT_EQ(h.state_of(p).is, state::due);
}

// --- a part of the cluster breaks

TEST(GatewayFails, EachRequestIsToldWhatBecameOfItsToken) {
  gateway_house h;
  auto placing = pay(), dispatched = pay(), answering = pay(), said = pay();
  auto a_said = h.ask(said);
  auto said_id = h.dispatched(1);
  auto a_answering = h.ask(answering);
  auto answering_id = h.dispatched(2);
  h.answer(answering_id, "half of ");
  EXPECT_EQ(a_answering.content(8), "half of ");
  auto a_dispatched = h.ask(dispatched);
  h.dispatched(3);
  auto a_placing = h.ask(placing);
  h.wait_place(4);
  h.door->hold();
  h.answer(said_id, "all", true);
  EXPECT_EQ(a_said.end().content, "all");
  auto spending = shut_before_spend(h);
  h.door->let_go();  // its request must come in
  auto a_spending = h.ask(spending);
  wait_spending(h);

  h.break_scheduler();
  for (auto* a : {&a_placing, &a_dispatched}) {
    auto end = a->end();
    EXPECT_EQ(end.status, 503u);
    EXPECT_EQ(end.change(), word::due);
  }
  EXPECT_EQ(a_answering.end().status, 0u);
  auto unspent = a_spending.end();
  EXPECT_EQ(unspent.status, 503u);
  EXPECT_EQ(unspent.change(), word::absent) << "nothing is known of it yet";
  let_spend(h);
  EXPECT_TRUE(eventually([&] { return h.state_of(spending).is == state::due; }));
  for (const auto* p : {&placing, &dispatched, &answering})
    EXPECT_EQ(h.state_of(*p).is, state::due);
  EXPECT_EQ(h.state_of(said).is, state::delivered);
  EXPECT_TRUE(h.empties());
  auto p = pay();
  auto late = h.ask(p).end();
  EXPECT_EQ(late.status, 503u);
  EXPECT_EQ(h.state_of(p).is, state::none);
}

TEST(GatewayFails, WhatIsSaidInFullGoesOnLeaving) {
  gateway_house h;
  auto p = pay(), refused = pay();
  auto a = h.ask(p);
  auto id = h.dispatched();
  auto b = h.ask(refused);
  auto refused_id = h.wait_place(2);
  h.door->hold();
  h.answer(id, "all", true);
  h.refuse(refused_id, schema::Refusal::FULL);
  h.barrier();
  h.break_scheduler();
  EXPECT_TRUE(eventually([&] { return h.count("open") == 2; })) << "their ends are not known yet";
  EXPECT_EQ(a.end().content, "all");
  EXPECT_EQ(b.end().status, 429u);
  wait_ends(h, 2);
  h.door->let_go();
  expect_left(h, p, state::delivered, 0);
  EXPECT_EQ(h.state_of(refused).is, state::due);
}

// --- claims

/// A token whose request was refused.
payment_of_test due_payment(const gateway_house& h) {
  auto p = pay();
  auto a = h.ask(p);
  h.refuse(h.wait_place(), schema::Refusal::FULL);
  a.end();
  EXPECT_TRUE(h.empties());
  return p;
}

TEST(GatewayClaim, ChangeIsTheSameEachTimeAndForThatRequestOnly) {
  gateway_house h;
  auto p = due_payment(h);
  auto first = h.claim(p).end(), second = h.claim(p).end();
  EXPECT_EQ(first.status, 200u);
  EXPECT_EQ(first.fields["content-type"], token_response_media);
  EXPECT_EQ(first.content.size(), 256u);
  EXPECT_EQ(first.content, second.content);
  payment_of_test other{p.token, pay().change};
  EXPECT_EQ(h.claim(other).end().status, 403u);
  EXPECT_EQ(h.count("changed"), 2u);
}

TEST(GatewayClaim, IsNotForADeliveredOrAnOpenRequest) {
  gateway_house h;
  auto p = pay();
  auto a = h.ask(p);
  auto id = h.dispatched();
  EXPECT_EQ(h.claim(p).end().status, 409u);
  h.answer(id, "all", true);
  a.end();
  EXPECT_TRUE(h.empties());
  EXPECT_EQ(h.claim(p).end().status, 403u);
}

TEST(GatewayClaim, OfATokenThatWasNeverSpentSpendsIt) {
  gateway_house h;
  auto p = pay();
  EXPECT_EQ(h.claim(p).end().status, 200u);
  auto late = h.ask(p).end();
  EXPECT_EQ(late.status, 403u);
  EXPECT_EQ(late.change(), word::none);
  payment_of_test bad{token_under(key_of_test(2)), p.change};
  EXPECT_EQ(h.claim(bad).end().status, 403u);
  EXPECT_EQ(h.state_of(bad).is, state::none);
}

TEST(GatewayClaim, WaitsForAnIssuerThatIsDownOrBusy) {
  gateway_house h;
  auto p = due_payment(h);
  h.issuer_says = 500;
  EXPECT_EQ(h.claim(p).end().status, 503u);
  h.issuer_says = 403;
  EXPECT_EQ(h.claim(p).end().status, 403u);
  h.issuer_says = 200;
  EXPECT_EQ(h.claim(p).end().status, 200u);
  h.issuer_server.reset();
  auto said = h.claim(p).end();
  EXPECT_EQ(said.status, 503u);
  EXPECT_EQ(said.change(), word::absent);
  EXPECT_EQ(h.state_of(p).is, state::due);
  EXPECT_TRUE(h.empties());
}

TEST(GatewayClaim, WhoseClientLeavesOrThatFailsInTheMiddleHarmsNothing) {
  gateway_house h;
  auto p = shut_before_spend(h);
  auto a = h.claim(p);
  wait_spending(h);
  a.leave();
  EXPECT_TRUE(h.empties());
  let_spend(h);
  EXPECT_TRUE(eventually([&] { return h.state_of(p).is == state::due; }));
  auto q = shut_before_spend(h);
  auto b = h.claim(q);
  wait_spending(h);
  h.break_scheduler();
  EXPECT_EQ(b.end().status, 503u);
  let_spend(h);
  EXPECT_TRUE(eventually([&] { return h.state_of(q).is == state::due; }));
  EXPECT_TRUE(h.empties());
}

// --- time goes by

TEST(GatewayTurns, AnEpochThatBeginsInTheMiddleChangesNothing) {
  gateway_house h;
  h.publish_roster(1);
  auto p = pay();
  auto a = h.ask(p);
  auto id = h.dispatched();
  h.answer(id, "half, ");
  h.publish_roster(2);
  h.barrier();
  h.answer(id, "and the rest", true);
  EXPECT_EQ(a.end().content, "half, and the rest");
  expect_left(h, p, state::delivered, 0);
  EXPECT_EQ(h.count("roster"), 2u);
  EXPECT_EQ(h.look("/roster").end().status, 200u);
  EXPECT_EQ(h.look("/roster/1").end().status, 200u);
  EXPECT_EQ(h.look("/roster/3").end().status, 404u);
}

TEST(GatewayTurns, AnOuterKeyOpensForItsGraceAndAnswersGoOnAfterIt) {
  gateway_house h;
  auto p = pay();
  auto a = h.ask(p);
  auto id = h.dispatched();
  const auto old = h.keys;
  h.shift_s += key_life_s + 1;
  h.tick_now();
  h.learn_keys();
  EXPECT_NE(h.keys.front().to_bytes(), old.front().to_bytes()) << "another one is current";
  auto ask_old = [&] {
    const auto now = std::exchange(h.keys, old);
    auto said = h.look("/checkpoint").end();
    h.keys = now;
    return said;
  };
  EXPECT_EQ(ask_old().status, 200u) << "within its grace";
  h.shift_s += 61;
  h.tick_now();
  auto refused = ask_old();
  EXPECT_EQ(refused.outer, 400);
  EXPECT_EQ(refused.type, ohttp_names::key_problem);
  EXPECT_EQ(h.look("/checkpoint").end().status, 200u);
  h.answer(id, "under the old key", true);
  EXPECT_EQ(a.end().content, "under the old key");
  expect_left(h, p, state::delivered, 0);
}

TEST(GatewayTurns, ATokenOfTheLastKeyIsTakenWithAChangeRequestUnderTheNewOne) {
  gateway_house h;
  h.shift_s += gateway_house::next_token_key_s + 1;
  h.tick_now();
  h.learn_keys();
  auto late = pay(0);  // as if the key had not turned
  auto said = h.ask(late).end();
  EXPECT_EQ(said.status, 400u);
  EXPECT_EQ(h.state_of(late).is, state::none);
  late.change = change_request(key_of_test(1).published());
  auto a = h.ask(late);
  h.answer(h.dispatched(), "all", true);
  EXPECT_EQ(a.end().content, "all");
  expect_left(h, late, state::delivered, 0);
}

// --- a flood

TEST(GatewayFlood, BodiesThatAreNotPaidForHaveABudget) {
  constexpr size_t body = 100'000;
  auto with = [](size_t budget) {
    return gateway_house::options{.http = {.body_bytes_max = 150'000, .bodies_bytes_max = budget}};
  };
  const size_t bytes = gateway_house().ask(pay(), ohttp_form::chunked, 1, body).bytes();
  ASSERT_LT(bytes, 150'000u);
  for (size_t budget : {2 * bytes - 1, 2 * bytes, 2 * bytes + 1}) {
    gateway_house h(with(budget));
    auto first = shut_before_spend(h), second = pay();
    auto a = h.ask(first, ohttp_form::chunked, 1, body);
    wait_spending(h);
    auto b = h.ask(second, ohttp_form::chunked, 1, body);
    const bool fits = budget >= 2 * bytes;
    if (!fits) {
      EXPECT_EQ(b.end().outer, 503) << "it was read although there was no room";
    }
    let_spend(h);
    const size_t wait_for = fits ? 2 : 1;
    h.wait_place(wait_for);
    EXPECT_EQ(h.state_of(second).is, fits ? state::open : state::none);
    for (size_t more : {1, 2}) {  // those who have paid no longer count
      auto p = pay();
      auto c = h.ask(p, ohttp_form::chunked, 1, body);
      EXPECT_NE(h.wait_place(wait_for + more), 0u);
    }
  }
}

}  // namespace
}  // namespace lethe::test

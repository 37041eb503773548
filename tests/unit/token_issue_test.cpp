// Buying tokens: messages, a client's half and an issuer's.
#include "runtime/base/varint.hpp"
#include "runtime/token/retry_after.hpp"
#include "runtime/token/token_limits.hpp"
#include "tests/unit/token_samples.hpp"

namespace lethe {
namespace {

using namespace test;

const hash32 digest = a_challenge.digest();
constexpr uint64_t now = 250;  // key 1 is current, 0 the previous one, 2 the next

const token_key& current() { return key_of_test(1).published(); }

TEST(TokenVectors, TheExchangesOfRfc9578AndAnotherImplementation) {
  LETHE_NEEDS_PROTOCOL_VECTORS();
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  ASSERT_FALSE(
      parser.load((protocol_vectors() / "privacypass-type2-rfc9578.json").string()).get(root));
  size_t seen = 0;
  for (simdjson::dom::element v : root["vectors"]) {
    token_issuer issuer;
    ASSERT_TRUE(issuer.add(*issuer_key::from_pem(std::string_view(v["skS_pem"])), 0));
    const token_key& key = *issuer.current(0);
    auto challenge = token_challenge::from_bytes(hex_of(v, "token_challenge"));
    ASSERT_TRUE(challenge) << challenge.why().text;
    hash32 nonce;
    std::ranges::copy(hex_of(v, "nonce"), nonce.begin());
    const bytes salt = hex_of(v, "salt"), factor = hex_of(v, "blind");
    auto pending = pending_token::make(key, challenge->digest(), nonce, {salt, factor});
    ASSERT_TRUE(pending) << pending.why().text;
    EXPECT_EQ(copy_of(pending->request().to_bytes()), hex_of(v, "token_request"));
    auto answer = issuer.answer(pending->request().to_bytes(), 0);
    EXPECT_EQ(answer.status, 200u);
    EXPECT_EQ(answer.body, hex_of(v, "token_response"));
    auto token = pending->finish(key, answer.body);
    ASSERT_TRUE(token) << token.why().text;
    EXPECT_EQ(copy_of(token->to_bytes()), hex_of(v, "token"));
    EXPECT_TRUE(verify_token(*token, key, challenge->digest()));
    ++seen;
  }
  EXPECT_EQ(seen, 10u);
}

TEST(PrivateToken, IsVerifiedAgainstItsKeyAndChallenge) {
  const private_token t = token_under(key_of_test(1));
  EXPECT_TRUE(verify_token(t, current(), digest));
  expect_refused(verify_token(t, key_of_test(0).published(), digest), "another key");
  expect_refused(verify_token(t, current(), sha256({})), "another challenge");
  private_token moved = t;  // under the name of another key
  moved.key_id = key_of_test(0).published().id();
  expect_refused(verify_token(moved, key_of_test(0).published(), digest), "signature");
  const bytes wire = copy_of(t.to_bytes());
  for (size_t at = 0; at < wire.size(); ++at) {
    auto other = private_token::from_bytes(flipped(wire, at));
    EXPECT_FALSE(other && verify_token(*other, current(), digest)) << at;
  }
  for (size_t size = 0; size < wire.size(); ++size)
    EXPECT_FALSE(private_token::from_bytes(bytes_view(wire).first(size)));
  EXPECT_FALSE(private_token::from_bytes(joined({wire, bytes(1)})));
  EXPECT_EQ(*private_token::from_bytes(wire), t);
  EXPECT_EQ(t.hash(), sha256({wire}));
}

TEST(TokenRequest, HasOneLengthAndOneType) {
  auto pending = pending_token::make(current(), digest);
  const bytes wire = copy_of(pending->request().to_bytes());
  EXPECT_EQ(*token_request::from_bytes(wire), pending->request());
  EXPECT_EQ(pending->request().digest(), sha256({wire}));
  for (size_t size = 0; size < wire.size(); ++size)
    expect_refused(token_request::from_bytes(bytes_view(wire).first(size)), "bytes");
  EXPECT_FALSE(token_request::from_bytes(joined({wire, bytes(1)})));
  for (size_t at : {0, 1}) expect_refused(token_request::from_bytes(flipped(wire, at)), "type");
  EXPECT_FALSE(read_token_response(bytes(255)));
  EXPECT_FALSE(read_token_response(bytes(257)));
}

TEST(TokenBatch, HoldsAsManyAsItsLimit) {
  std::vector<token_request> all(limits::token_batch_max);
  for (size_t i = 0; i < all.size(); ++i) all[i].short_key_id = uint8_t(i);
  const bytes wire = write_batch_request(all);
  EXPECT_EQ(*read_batch_request(wire), all);
  auto of = [](size_t count, size_t each) {
    bytes out;
    append_varint(out, count * each);
    out.resize(out.size() + count * each);
    return out;
  };
  expect_refused(read_batch_request(of(0, 259)), "0 in it");
  expect_refused(read_batch_request(of(limits::token_batch_max + 1, 259)), "257 in it");
  EXPECT_TRUE(read_batch_response(of(1, 1)));
  EXPECT_EQ(read_batch_response(of(limits::token_batch_max, 1))->size(), limits::token_batch_max);
  expect_refused(read_batch_response(of(0, 1)), "0 in it");
  expect_refused(read_batch_response(of(limits::token_batch_max + 1, 1)), "257 in it");
}

TEST(TokenBatch, IsRefusedCutAnywhere) {
  const bytes request = write_batch_request(std::vector<token_request>(3));
  for (size_t size = 0; size < request.size(); ++size)
    EXPECT_FALSE(read_batch_request(bytes_view(request).first(size))) << size;
  EXPECT_FALSE(read_batch_request(joined({request, bytes(1)})));
  expect_refused(read_batch_request(flipped(request, 2 + 259 + 1)), "type");
  const batch_answer answer{token_signature{}, std::nullopt, token_signature{}};
  const bytes response = write_batch_response(answer);
  EXPECT_EQ(response.size(), 2u + 259 + 1 + 259);
  EXPECT_EQ(*read_batch_response(response), answer);
  for (size_t size = 0; size < response.size(); ++size)
    EXPECT_FALSE(read_batch_response(bytes_view(response).first(size))) << size;
  EXPECT_FALSE(read_batch_response(joined({response, bytes(1)})));
  expect_refused(read_batch_response(flipped(response, 2, 2)), "neither");
  expect_refused(read_batch_response(flipped(response, 4)), "type");
  // Entries that end early, under a length that fits.
  bytes early{std::byte{0x40}, std::byte{100}, std::byte{1}, std::byte{0}, std::byte{2}};
  early.resize(102);
  expect_refused(read_batch_response(early), "ends in an answer");
  // A longer form of the length is valid.
  EXPECT_TRUE(read_batch_response(from_hex("400100")));
}

TEST(TokenPurchase, BuysABatch) {
  const token_issuer issuer = issuer_of_test();
  auto purchase = token_purchase::make(current(), digest, 5);
  auto answer = issuer.answer_batch(purchase->request(), now);
  EXPECT_EQ(answer.status, 200u) << answer.why;
  auto bought = purchase->finish(current(), answer.body);
  ASSERT_TRUE(bought) << bought.why().text;
  ASSERT_EQ(bought->tokens.size(), 5u);
  for (const auto& t : bought->tokens) EXPECT_TRUE(verify_token(t, current(), digest));
  EXPECT_NE(bought->tokens[0].nonce, bought->tokens[1].nonce);
  EXPECT_EQ(issuer.answer_batch(purchase->request(), now).body, answer.body) << "deterministic";
  EXPECT_NE(token_purchase::make(current(), digest, 5)->request(), purchase->request());
}

TEST(TokenPurchase, HasLimits) {
  EXPECT_FALSE(token_purchase::make(current(), digest, 0));
  EXPECT_EQ(token_purchase::make(current(), digest, 1)->size(), 1u);
  EXPECT_FALSE(token_purchase::make(current(), digest, limits::token_batch_max + 1));
}

TEST(TokenPurchase, KeepsWhatIsGoodOfAnAnswerInPart) {
  const token_issuer issuer = issuer_of_test();
  auto purchase = token_purchase::make(current(), digest, 4);
  auto answer = *read_batch_response(issuer.answer_batch(purchase->request(), now).body);
  const batch_answer whole = answer;
  answer[1].reset();
  (*answer[2])[100] ^= std::byte{1};
  auto bought = purchase->finish(current(), write_batch_response(answer));
  ASSERT_TRUE(bought) << bought.why().text;
  EXPECT_EQ(bought->tokens.size(), 2u);
  EXPECT_EQ(bought->refused, 1u);
  EXPECT_EQ(bought->wrong, 1u);
  std::swap(answer[0], answer[3]);
  EXPECT_EQ(purchase->finish(current(), write_batch_response(answer))->wrong, 3u) << "out of order";
  answer.pop_back();
  expect_refused(purchase->finish(current(), write_batch_response(answer)), "3 answers to 4");
  EXPECT_EQ(purchase->finish(current(), write_batch_response(whole))->tokens.size(), 4u);
}

TEST(TokenIssuer, SignsPurchasesUnderTheCurrentKeyOnly) {
  const token_issuer issuer = issuer_of_test();
  for (size_t key : {0, 1, 2}) {
    auto pending = pending_token::make(key_of_test(key).published(), digest);
    for (uint64_t time : {99u, 100u, 199u, 200u, 299u, 300u, 1000u}) {
      const bool live = time >= 100 * (key + 1) && (time < 100 * (key + 2) || key == 2);
      auto answer = issuer.answer(pending->request().to_bytes(), time);
      EXPECT_EQ(answer.status, live ? 200u : 422u) << key << " at " << time;
      EXPECT_EQ(answer.body.empty(), !live);
      EXPECT_EQ(answer.why.empty(), live);
    }
  }
}

TEST(TokenIssuer, Says422ToWhatItCannotSign) {
  const token_issuer issuer = issuer_of_test();
  auto pending = pending_token::make(current(), digest);
  const bytes good = copy_of(pending->request().to_bytes());
  EXPECT_EQ(issuer.answer(good, now).status, 200u);
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_EQ(issuer.answer(bytes_view(good).first(size), now).status, 422u);
  EXPECT_EQ(issuer.answer(flipped(good, 1), now).status, 422u) << "type";
  EXPECT_EQ(issuer.answer(flipped(good, 2), now).status, 422u) << "key";
  token_request large{.short_key_id = current().short_id()};
  large.blinded.fill(std::byte{0xff});
  EXPECT_EQ(issuer.answer(large.to_bytes(), now).status, 422u) << "not below the modulus";
  EXPECT_EQ(token_issuer().answer(good, now).status, 422u);
  EXPECT_EQ(issuer.answer_batch(good, now).status, 422u) << "a single request is no batch";
}

TEST(TokenIssuer, SaysWhichOfABatchItRefused) {
  const token_issuer issuer = issuer_of_test();
  std::vector<token_request> requests;
  for (size_t key : {1, 0, 1})
    requests.push_back(pending_token::make(key_of_test(key).published(), digest)->request());
  requests[2].blinded.fill(std::byte{0xff});
  auto answer = issuer.answer_batch(write_batch_request(requests), now);
  EXPECT_EQ(answer.status, 206u);
  auto read = read_batch_response(answer.body);
  ASSERT_TRUE(read);
  EXPECT_TRUE((*read)[0]);
  EXPECT_FALSE((*read)[1]);
  EXPECT_FALSE((*read)[2]);
  requests.erase(requests.begin());
  answer = issuer.answer_batch(write_batch_request(requests), now);
  EXPECT_EQ(answer.status, 422u);
  EXPECT_TRUE(answer.body.empty());
}

TEST(TokenIssuer, KeepsKeysThatCanBeToldApart) {
  token_issuer issuer = issuer_of_test();
  expect_refused(issuer.add(copy_of_key(key_of_test(0)), 400), "same byte");
  issuer.retire(300);
  EXPECT_EQ(issuer.size(), 2u) << "the current one and the one before";
  EXPECT_EQ(issuer.redeemable(key_of_test(0).published().id(), 300), nullptr);
  EXPECT_NE(issuer.redeemable(key_of_test(1).published().id(), 300), nullptr);
  expect_refused(issuer.add(copy_of_key(key_of_test(0)), 300), "begins at 300");
  EXPECT_TRUE(issuer.add(copy_of_key(key_of_test(0)), 400));
}

TEST(TokenIssuer, KeepsNoMoreKeysThanItsLimit) {
  token_issuer issuer = issuer_of_test();
  ASSERT_EQ(limits::issuer_keys_max, 4u);
  issuer_key key = issuer_key::make();
  while (!issuer.add(copy_of_key(key), 400)) key = issuer_key::make();
  expect_refused(issuer.add(issuer_key::make(), 500), "4 keys already");
}

TEST(TokenIssuer, RedeemsUnderTheCurrentKeyAndTheOneBefore) {
  const token_issuer issuer = issuer_of_test();
  for (size_t key : {0, 1, 2})
    for (uint64_t time : {99u, 100u, 200u, 299u, 300u}) {
      const uint64_t from = 100 * (key + 1);
      const bool live = time >= from && (key == 2 || time < from + 200);
      EXPECT_EQ(issuer.redeemable(key_of_test(key).published().id(), time) != nullptr, live)
          << key << " at " << time;
    }
}

TEST(Change, IsSignedForATokenThatRedeems) {
  const token_issuer issuer = issuer_of_test();
  for (size_t key : {0, 1}) {
    const bytes spent = copy_of(token_under(key_of_test(key)).to_bytes());
    auto pending = pending_token::make(current(), digest);
    const bytes request = copy_of(pending->request().to_bytes());
    auto claim = issuer.claim_change(spent, request, digest, now);
    ASSERT_TRUE(claim) << claim.why().text;
    EXPECT_EQ(claim->request_digest, sha256({request}));
    EXPECT_EQ(claim->key_id, key_of_test(key).published().id());
    EXPECT_EQ(claim->nonce, private_token::from_bytes(spent)->nonce);
    auto answer = issuer.sign(*claim, now);
    EXPECT_EQ(answer.status, 200u) << answer.why;
    EXPECT_EQ(issuer.sign(*claim, 399).body, answer.body) << "also when a new key began";
    auto token = pending->finish(current(), answer.body);
    ASSERT_TRUE(token) << token.why().text;
    EXPECT_TRUE(verify_token(*token, current(), digest));
  }
}

TEST(Change, IsRefusedForEverythingElse) {
  const token_issuer issuer = issuer_of_test();
  const bytes spent = copy_of(token_under(key_of_test(1)).to_bytes());
  const bytes request = copy_of(pending_token::make(current(), digest)->request().to_bytes());
  EXPECT_TRUE(issuer.claim_change(spent, request, digest, now));
  for (size_t at = 0; at < spent.size(); at += 3)
    EXPECT_FALSE(issuer.claim_change(flipped(spent, at), request, digest, now)) << at;
  for (size_t size : {0u, 353u})
    EXPECT_FALSE(issuer.claim_change(bytes_view(spent).first(size), request, digest, now));
  for (size_t size = 0; size < request.size(); ++size)
    EXPECT_FALSE(issuer.claim_change(spent, bytes_view(request).first(size), digest, now));
  expect_refused(issuer.claim_change(spent, request, sha256({}), now), "another challenge");
  expect_refused(issuer.claim_change(spent, request, digest, 150), "does not redeem");
  const bytes old = copy_of(token_under(key_of_test(0)).to_bytes());
  EXPECT_TRUE(issuer.claim_change(old, request, digest, 299));
  expect_refused(issuer.claim_change(old, request, digest, 300), "does not redeem");
  auto next = pending_token::make(key_of_test(2).published(), digest)->request().to_bytes();
  expect_refused(issuer.claim_change(spent, next, digest, now), "no key that signs");
  token_request large{.short_key_id = current().short_id()};
  large.blinded.fill(std::byte{0xff});
  expect_refused(issuer.claim_change(spent, large.to_bytes(), digest, now), "modulus");
}

TEST(RetryAfter, IsSaidInCoarseSteps) {
  static_assert(coarse_retry_s(0) == 5 && coarse_retry_s(1) == 5 && coarse_retry_s(5) == 5);
  static_assert(coarse_retry_s(6) == 10 && coarse_retry_s(600) == 600);
  EXPECT_EQ(coarse_retry_s(601) % retry_after_step_s, 0u);
  EXPECT_EQ(coarse_retry_s(UINT64_MAX) % retry_after_step_s, 0u);
  EXPECT_GT(coarse_retry_s(UINT64_MAX), UINT64_MAX - 5);
}

}  // namespace
}  // namespace lethe

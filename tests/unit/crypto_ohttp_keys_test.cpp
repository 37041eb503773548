#include "runtime/crypto/ohttp_keys.hpp"

#include "crypto_ohttp_samples.hpp"

namespace lethe {
namespace {

using namespace test;

hpke_key derived(uint32_t seed) { return *hpke_key::derive(0x20, random_bytes(32, seed)); }

ohttp_keys ring(uint8_t first_id = 1, uint64_t with_grace = grace) {
  return *ohttp_keys::make({.grace = with_grace, .first_id = first_id}, derived(1), derived(2));
}

std::vector<uint8_t> published_ids(const ohttp_keys& keys) {
  std::vector<uint8_t> ids;
  auto read = read_ohttp_keys(keys.published());
  EXPECT_TRUE(read);
  for (const ohttp_config& k : *read) ids.push_back(k.key_id);
  return ids;
}

bool has(const ohttp_keys& keys, uint8_t id, uint64_t now) {
  const auto* found = keys.find({.key_id = id}, now);
  EXPECT_TRUE(!found || found->id == id);
  return found;
}

TEST(OhttpKeys, PublishTheCurrentAndTheNext) {
  auto keys = ring(7);
  EXPECT_EQ(published_ids(keys), (std::vector<uint8_t>{7, 8}));
  EXPECT_EQ(keys.current_id(), 7);
  auto read = read_ohttp_keys(keys.published());
  EXPECT_EQ(read->at(0).pk, copy_of(derived(1).public_key()));
  EXPECT_EQ(read->at(1).pk, copy_of(derived(2).public_key()));
  EXPECT_EQ(*read->at(0).suite(), hpke_suite{});
  EXPECT_TRUE(has(keys, 7, 0) && has(keys, 8, UINT64_MAX)) << "both are accepted";
  EXPECT_FALSE(has(keys, 6, 0) || has(keys, 9, 0));
}

TEST(OhttpKeys, TheSuiteIsPartOfTheKey) {
  auto keys = *ohttp_keys::make({.suite = {.aead = 2}, .grace = grace});
  EXPECT_TRUE(keys.find({.key_id = 1, .suite = {.aead = 2}}, 0));
  EXPECT_FALSE(keys.find({.key_id = 1, .suite = {.aead = 1}}, 0));
  EXPECT_FALSE(keys.find({.key_id = 1, .suite = {.kdf = 2, .aead = 2}}, 0));
  EXPECT_FALSE(keys.find({.key_id = 1, .suite = {.kem = 0x10, .aead = 2}}, 0));
  EXPECT_FALSE(ohttp_keys::make({.suite = {.aead = 4}}));
  EXPECT_FALSE(ohttp_keys::make({.suite = {.kem = 0x647a}}));
}

TEST(OhttpKeys, ARetiredKeyIsAcceptedForOneGracePeriod) {
  auto keys = ring();
  ASSERT_TRUE(keys.rotate(1000));
  EXPECT_EQ(published_ids(keys), (std::vector<uint8_t>{2, 3}));
  EXPECT_TRUE(has(keys, 1, 1000) && has(keys, 1, 1000 + grace - 1));
  EXPECT_FALSE(has(keys, 1, 1000 + grace)) << "also if nobody asked to forget it";
  EXPECT_FALSE(has(keys, 1, UINT64_MAX));
  keys.forget(1000 + grace - 1);
  EXPECT_EQ(keys.size(), 3u);
  keys.forget(1000 + grace);
  EXPECT_EQ(keys.size(), 2u);
  EXPECT_FALSE(has(keys, 1, 1000)) << "gone";
  EXPECT_TRUE(has(keys, 2, UINT64_MAX));
}

TEST(OhttpKeys, WithoutGraceARetiredKeyIsGone) {
  auto keys = ring(1, 0);
  ASSERT_TRUE(keys.rotate(5));
  EXPECT_EQ(keys.size(), 2u);
  EXPECT_FALSE(has(keys, 1, 0));
}

TEST(OhttpKeys, AGraceWithoutEndIsNoOverflow) {
  auto keys = ring(1, UINT64_MAX);
  ASSERT_TRUE(keys.rotate(5));
  EXPECT_TRUE(has(keys, 1, 5) && has(keys, 1, UINT64_MAX - 2));
  EXPECT_EQ(published_ids(keys), (std::vector<uint8_t>{2, 3}));
}

TEST(OhttpKeys, AnIdIsNeverReusedWhileItIsAccepted) {
  auto keys = ring(250);
  // One key stays for long: the others go round it.
  for (uint64_t now = 0; now < 3 * 256; ++now) {
    ASSERT_TRUE(keys.rotate(now));
    std::vector<bool> taken(256);
    size_t accepted = 0;
    for (int id = 0; id < 256; ++id)
      if (has(keys, uint8_t(id), now)) ++accepted;
    EXPECT_EQ(accepted, keys.size());
    EXPECT_EQ(keys.size(), std::min<size_t>(now + 1, grace) + 2) << now;
    EXPECT_EQ(keys.current_id(), uint8_t(250 + now + 1));
  }
}

TEST(OhttpKeys, WithoutAFreeIdNothingChanges) {
  auto keys = ring(0, 1'000'000);
  for (uint64_t n = 2; n < 256; ++n) ASSERT_TRUE(keys.rotate(n)) << n;
  const bytes before = keys.published();
  EXPECT_EQ(keys.size(), 256u);
  EXPECT_FALSE(keys.rotate(256));
  EXPECT_EQ(keys.published(), before);
  EXPECT_TRUE(has(keys, 0, 256));
  ASSERT_TRUE(keys.rotate(1'000'002)) << "the first key's grace is over";
  EXPECT_EQ(published_ids(keys), (std::vector<uint8_t>{255, 0}));
}

TEST(OhttpKeys, TheSameKeyTwiceIsRefused) {
  auto keys = ring();
  EXPECT_FALSE(keys.rotate(1, derived(1)));
  EXPECT_FALSE(keys.rotate(1, derived(2)));
  EXPECT_TRUE(keys.rotate(1, derived(3)));
  EXPECT_FALSE(ohttp_keys::make({}, derived(1), derived(1)));
}

TEST(OhttpKeys, OpenWhatIsSealedToCurrentNextAndPreviousAndNothingOlder) {
  auto keys = ring();
  auto of = [](const ohttp_keys& k, size_t at) { return read_ohttp_keys(k.published())->at(at); };
  const auto first = of(keys, 0), second = of(keys, 1);
  auto tried = [&](const ohttp_config& to, uint64_t now) {
    auto sealed = seal_ohttp_request(to, as_bytes("question"));
    EXPECT_TRUE(sealed);
    auto o = opened_request_of(keys, ohttp_form::whole, sealed->message, 10, now);
    EXPECT_EQ(o.plain, o.whole ? "question" : "");
    return o.why;
  };
  EXPECT_EQ(tried(first, 0), ohttp_refusal::none);
  EXPECT_EQ(tried(second, 0), ohttp_refusal::none);
  ASSERT_TRUE(keys.rotate(10));
  EXPECT_EQ(tried(first, 10 + grace - 1), ohttp_refusal::none);
  EXPECT_EQ(tried(first, 10 + grace), ohttp_refusal::key);
  EXPECT_EQ(tried(second, 10 + grace), ohttp_refusal::none);
  EXPECT_EQ(tried(of(keys, 1), 10), ohttp_refusal::none);
  ASSERT_TRUE(keys.rotate(10 + grace));
  EXPECT_EQ(tried(first, 10), ohttp_refusal::key);
}

TEST(OhttpKeys, ASealIsRememberedOverRotation) {
  auto keys = ring();
  auto sealed = seal_ohttp_request(read_ohttp_keys(keys.published())->at(0), as_bytes("question"));
  auto why = [&](uint64_t now) {
    return opened_request_of(keys, ohttp_form::whole, sealed->message, 10, now).why;
  };
  EXPECT_EQ(why(0), ohttp_refusal::none);
  ASSERT_TRUE(keys.rotate(10));
  EXPECT_EQ(why(11), ohttp_refusal::replay);
  EXPECT_EQ(why(10 + grace), ohttp_refusal::key);
}

TEST(OhttpKeys, ARequestThatBeganIsFinishedWhenItsKeyIsGone) {
  auto keys = ring();
  auto to = read_ohttp_keys(keys.published())->at(0);
  auto sealer = *ohttp_request_sealer::make(to, ohttp_form::chunked);
  const bytes sealed = sealed_in(sealer, as_bytes("question"), {4, 4});
  ohttp_request_opener opener(keys, ohttp_form::chunked, 0), other(keys, ohttp_form::chunked, 0);
  std::pmr::string plain, none;
  ASSERT_TRUE(opener.push(bytes_view(sealed).first(head_and_enc_bytes), plain));
  ASSERT_TRUE(other.push(bytes_view(sealed).first(head_and_enc_bytes), none));
  ASSERT_TRUE(keys.rotate(1));
  keys.forget(1 + grace);
  EXPECT_EQ(keys.size(), 2u);
  ASSERT_TRUE(opener.push(bytes_view(sealed).subspan(head_and_enc_bytes), plain));
  EXPECT_TRUE(opener.finish(plain));
  EXPECT_EQ(plain, "question");
  EXPECT_FALSE(other.push(bytes_view(sealed).subspan(head_and_enc_bytes), none));
  EXPECT_EQ(other.refusal(), ohttp_refusal::replay);
}

}  // namespace
}  // namespace lethe

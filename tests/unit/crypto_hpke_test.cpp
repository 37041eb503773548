#include "runtime/crypto/hpke.hpp"

#include "crypto_samples.hpp"
#include "runtime/crypto/labeled_hkdf.hpp"

namespace lethe {
namespace {

using namespace test;

static_assert(!std::is_copy_constructible_v<key_bytes> && !std::is_copy_constructible_v<hpke_key>);
static_assert(std::is_nothrow_move_constructible_v<key_bytes>);
static_assert(std::is_move_constructible_v<hpke_sender> &&
              !std::is_copy_constructible_v<hpke_sender>);

constexpr uint16_t x25519 = hpke_key::kem_x25519;

hpke_key key_from(bytes_view private_key) {
  auto key = hpke_key::from_private(x25519, private_key);
  if (!key) ADD_FAILURE() << key.why().text;
  return *std::move(key);
}

bytes opened(hpke_receiver& by, bytes_view aad, bytes_view sealed) {
  bytes out(sealed.size() < aead_tag_bytes ? 0 : sealed.size() - aead_tag_bytes);
  auto good = by.open(aad, sealed, out.data());
  return good ? out : text_bytes("did not open");
}

void expect_vector(simdjson::dom::element v) {
  const hpke_suite suite{.aead = uint16_t(uint64_t(v["aead_id"]))};
  auto receiver_key = hpke_key::derive(x25519, hex_of(v, "ikmR"));
  auto ephemeral = hpke_key::derive(x25519, hex_of(v, "ikmE"));
  ASSERT_TRUE(receiver_key && ephemeral);
  EXPECT_EQ(copy_of(receiver_key->public_key()), hex_of(v, "pkRm"));
  EXPECT_EQ(copy_of(key_from(hex_of(v, "skRm")).public_key()), hex_of(v, "pkRm"));
  EXPECT_EQ(copy_of(key_from(hex_of(v, "skEm")).public_key()), hex_of(v, "pkEm"));
  auto shared = ephemeral->shared_with_receiver(receiver_key->public_key());
  ASSERT_TRUE(shared);
  EXPECT_EQ(copy_of(shared->view()), hex_of(v, "shared_secret"));

  const bytes info = hex_of(v, "info");
  auto sender = hpke_sender::make(suite, receiver_key->public_key(), info, *ephemeral);
  ASSERT_TRUE(sender) << sender.why().text;
  EXPECT_EQ(copy_of(sender->enc()), hex_of(v, "enc"));
  auto receiver = hpke_receiver::make(suite, *receiver_key, sender->enc(), info);
  ASSERT_TRUE(receiver) << receiver.why().text;
  EXPECT_EQ(copy_of(receiver->keys().nonces.base.view()), hex_of(v, "base_nonce"));
  EXPECT_EQ(copy_of(receiver->keys().exporter.view()), hex_of(v, "exporter_secret"));

  size_t seen = 0;
  for (auto e : v["encryptions"].get_array()) {
    sender->skip_to(uint64_t(e["seq"]));
    receiver->skip_to(uint64_t(e["seq"]));
    EXPECT_EQ(joined({sender->keys().nonces.current()}), hex_of(e, "nonce"));
    bytes sealed;
    ASSERT_TRUE(sender->seal(hex_of(e, "aad"), hex_of(e, "pt"), sealed));
    EXPECT_EQ(sealed, hex_of(e, "ct"));
    EXPECT_EQ(opened(*receiver, hex_of(e, "aad"), sealed), hex_of(e, "pt"));
    ++seen;
  }
  for (auto e : v["exports"].get_array()) {
    bytes out(e["L"].get_uint64().value());
    sender->keys().export_to(hex_of(e, "exporter_context"), out);
    EXPECT_EQ(out, hex_of(e, "exported_value"));
    ++seen;
  }
  EXPECT_EQ(seen, 12u);
}

TEST(Hpke, AgreesWithEveryPublishedVectorOfItsSuites) {
  LETHE_NEEDS_PROTOCOL_VECTORS();
  simdjson::dom::parser parser;
  auto file = parser.load((protocol_vectors() / "hpke-rfc9180.json").string());
  size_t tried = 0;
  for (simdjson::dom::element v : file["vectors"].get_array()) {
    if (uint64_t(v["mode"]) != 0 || uint64_t(v["kem_id"]) != x25519) continue;
    if (uint64_t(v["aead_id"]) == 0xffff) continue;  // export only: no suite of ours
    expect_vector(v);
    ++tried;
  }
  EXPECT_EQ(tried, 3u);
}

TEST(Hpke, RefusesEveryPublicKeyThatGivesZeroes) {
  LETHE_NEEDS_PROTOCOL_VECTORS();
  simdjson::dom::parser parser;
  auto file = parser.load((protocol_vectors() / "x25519-edge.json").string());
  size_t refused = 0, taken = 0;
  for (simdjson::dom::element v : file["must_refuse"].get_array()) {
    hpke_key key = key_from(hex_of(v, "private"));
    EXPECT_FALSE(key.shared_with_receiver(hex_of(v, "public"))) << uint64_t(v["tcId"]);
    EXPECT_FALSE(hpke_receiver::make({}, key, hex_of(v, "public"), {})) << uint64_t(v["tcId"]);
    ++refused;
  }
  const std::array kem{std::byte{'K'}, std::byte{'E'}, std::byte{'M'}, std::byte{}, std::byte{32}};
  for (simdjson::dom::element v : file["must_accept"].get_array()) {
    hpke_key key = key_from(hex_of(v, "private"));
    const bytes other = hex_of(v, "public");
    auto shared = key.shared_with_receiver(other);
    ASSERT_TRUE(shared) << uint64_t(v["tcId"]);
    labeled_hkdf hkdf{kem};
    key_bytes prk = hkdf.extract({}, "eae_prk", hex_of(v, "shared"));
    key_bytes right = hkdf.expand(prk.view(), "shared_secret", key.public_key(), other, 32);
    EXPECT_EQ(copy_of(shared->view()), copy_of(right.view())) << uint64_t(v["tcId"]);
    ++taken;
  }
  EXPECT_EQ(refused, 31u);
  EXPECT_EQ(taken, 21u);
}

/// A fresh pair of contexts.
struct contexts {
  explicit contexts(uint16_t aead, std::string_view info = "i", std::string_view other_info = "i")
      : suite{.aead = aead}, key(*hpke_key::make(x25519)) {
    sender.emplace(*hpke_sender::make(suite, key.public_key(), as_bytes(info)));
    receiver.emplace(*hpke_receiver::make(suite, key, sender->enc(), as_bytes(other_info)));
  }
  hpke_suite suite;
  hpke_key key;
  std::optional<hpke_sender> sender;
  std::optional<hpke_receiver> receiver;
};

const bytes failed = text_bytes("did not open");

TEST(Hpke, AnyChangedBitIsRefusedAndTheRightMessageStillOpens) {
  for (uint16_t aead : {1, 2, 3}) {
    contexts c(aead);
    bytes sealed;
    ASSERT_TRUE(c.sender->seal(as_bytes("aad"), as_bytes("text"), sealed));
    for (size_t i = 0; i < 8 * sealed.size(); ++i)
      EXPECT_EQ(opened(*c.receiver, as_bytes("aad"), flipped(sealed, i / 8, 1 << i % 8)), failed);
    for (size_t n = 0; n < sealed.size(); ++n)
      EXPECT_EQ(opened(*c.receiver, as_bytes("aad"), bytes_view(sealed).first(n)), failed);
    EXPECT_EQ(opened(*c.receiver, as_bytes("aae"), sealed), failed);
    EXPECT_EQ(opened(*c.receiver, {}, sealed), failed);
    EXPECT_EQ(opened(*c.receiver, as_bytes("aad"), joined({sealed, as_bytes("x")})), failed);
    EXPECT_EQ(opened(*c.receiver, as_bytes("aad"), sealed), text_bytes("text"));
    EXPECT_EQ(opened(*c.receiver, as_bytes("aad"), sealed), failed) << "a replay";
  }
}

TEST(Hpke, WhatDoesNotOpenIsNotLeftInTheOutput) {
  for (uint16_t aead : {1, 2, 3}) {
    contexts c(aead);
    bytes sealed, out(1000, std::byte{7});
    ASSERT_TRUE(c.sender->seal({}, bytes(1000, std::byte{'p'}), sealed));
    EXPECT_FALSE(c.receiver->open({}, flipped(sealed, 1000), out.data()));
    EXPECT_EQ(out, bytes(1000));
  }
}

TEST(Hpke, OrderInfoAndReceiverMatter) {
  for (uint16_t aead : {1, 2, 3}) {
    contexts c(aead);
    bytes first, second;
    ASSERT_TRUE(c.sender->seal({}, as_bytes("1"), first));
    ASSERT_TRUE(c.sender->seal({}, as_bytes("2"), second));
    EXPECT_EQ(opened(*c.receiver, {}, second), failed);
    EXPECT_EQ(opened(*c.receiver, {}, first), text_bytes("1"));
    EXPECT_EQ(opened(*c.receiver, {}, second), text_bytes("2"));
    contexts other_info(aead, "a", "b");
    bytes sealed;
    ASSERT_TRUE(other_info.sender->seal({}, {}, sealed));
    EXPECT_EQ(opened(*other_info.receiver, {}, sealed), failed);
    auto wrong = hpke_receiver::make(c.suite, other_info.key, c.sender->enc(), as_bytes("i"));
    EXPECT_EQ(opened(*wrong, {}, first), failed);
  }
}

TEST(Hpke, TheLastNumberIsNeverUsedTwice) {
  contexts c(1);
  c.sender->skip_to(nonce_counter::end - 1);
  c.receiver->skip_to(nonce_counter::end - 1);
  bytes sealed, more;
  ASSERT_TRUE(c.sender->seal({}, as_bytes("last"), sealed));
  EXPECT_EQ(opened(*c.receiver, {}, sealed), text_bytes("last"));
  EXPECT_FALSE(c.sender->seal({}, as_bytes("more"), more));
  EXPECT_TRUE(more.empty());
  std::byte out[4];
  EXPECT_FALSE(c.receiver->open({}, sealed, out));
}

TEST(HpkeDeathTest, NumbersOnlyRise) {
  contexts c(1);
  c.sender->skip_to(5);
  EXPECT_DEATH(c.sender->skip_to(4), "broken invariant");
}

TEST(Hpke, RefusesSuitesItDoesNotHave) {
  hpke_key key = *hpke_key::make(x25519);
  const hpke_suite unknown[] = {{.kem = 0x647a}, {.kem = 0x0010},  {.kem = 0},
                                {.kdf = 0},      {.kdf = 2},       {.aead = 0},
                                {.aead = 4},     {.aead = 0xffff}, {.kem = 0x0030}};
  for (const hpke_suite& s : unknown) {
    EXPECT_FALSE(expect_known(s));
    EXPECT_FALSE(hpke_sender::make(s, key.public_key(), {}));
    EXPECT_FALSE(hpke_receiver::make(s, key, key.public_key(), {}));
    EXPECT_EQ(hpke_suite::from_bytes(s.bytes()), s);
  }
  EXPECT_FALSE(hpke_key::make(0x647a));
  EXPECT_FALSE(hpke_key::derive(0x0010, bytes(32)));
}

TEST(Hpke, RefusesKeysOfAnotherLength) {
  hpke_key key = *hpke_key::make(x25519);
  for (size_t n : {0, 31, 33, 65}) {
    EXPECT_FALSE(hpke_sender::make({}, bytes(n, std::byte{9}), {}));
    EXPECT_FALSE(hpke_receiver::make({}, key, bytes(n, std::byte{9}), {}));
    EXPECT_FALSE(hpke_key::from_private(x25519, bytes(n)));
  }
  EXPECT_FALSE(hpke_key::derive(x25519, bytes(31)));
  EXPECT_TRUE(hpke_key::derive(x25519, bytes(32)));
}

TEST(Hkdf, AgreesWithRfc5869) {  // test cases 1 and 3
  const bytes ikm(22, std::byte{0x0b});
  key_bytes prk = hkdf_extract(from_hex("000102030405060708090a0b0c"), {ikm});
  EXPECT_EQ(copy_of(prk.view()),
            from_hex("077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5"));
  bytes okm(42);
  hkdf_expand(prk.view(), {from_hex("f0f1f2f3f4f5f6f7f8f9")}, okm);
  EXPECT_EQ(okm, from_hex("3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf"
                          "34007208d5b887185865"));
  key_bytes unsalted = hkdf_extract({}, {bytes_view(ikm).first(7), bytes_view(ikm).subspan(7)});
  hkdf_expand(unsalted.view(), {}, okm);
  EXPECT_EQ(okm, from_hex("8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d"
                          "9d201395faa4b61a96c8"));
}

TEST(KeyBytes, LeavesNothingWhereItWas) {
  alignas(key_bytes) std::byte room[sizeof(key_bytes)];
  auto* key = new (room) key_bytes(bytes(64, std::byte{0x5a}));
  auto left = [&room] { return std::ranges::count(room, std::byte{0x5a}); };
  EXPECT_EQ(left(), 64);
  {
    key_bytes moved = std::move(*key);
    EXPECT_EQ(left(), 0);
    EXPECT_EQ(moved.size(), 64u);
    *key = std::move(moved);
    EXPECT_EQ(left(), 64);
    EXPECT_EQ(moved.size(), 0u);
  }
  key->~key_bytes();
  asm volatile("" : : "r"(room) : "memory");
  EXPECT_EQ(left(), 0);
}

}  // namespace
}  // namespace lethe

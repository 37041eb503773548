// After a request and its answer are gone, none of their keys is in the process's memory.

#include "crypto_memory.hpp"
#include "crypto_samples.hpp"
#include "runtime/crypto/labeled_hkdf.hpp"
#include "runtime/crypto/node_seal.hpp"
#include "runtime/crypto/sealed_message.hpp"

namespace lethe {
namespace {

using namespace test;

constexpr uint32_t now = 3;
const hash32 token = sha256({as_bytes("a token")});

node_key key_of_test() {
  auto seal = hpke_key::derive(0x20, random_bytes(32, 41));
  return *node_key::from({}, *std::move(seal), signing_key::make());
}

/// Every secret of an exchange, worked out once more from the node's key.
[[gnu::noinline]] std::vector<named_needle> secrets_of(const node_key& key, bytes_view message,
                                                       bytes_view answer_nonce) {
  std::vector<named_needle> all;
  auto add = [&all](const char* name, bytes_view b) { all.push_back({name, needle(b)}); };
  auto m = sealed_message::parse(message);
  const seal_entry& e = m->entries[0];
  auto shared = key.seal_key().shared_with_sender(e.enc);
  add("shared secret", shared->view());
  auto hpke = hpke_receiver::make(m->suite, key.seal_key(), e.enc, m->info(e.node_id));
  add("exporter secret", hpke->keys().exporter.view());
  add("base nonce", hpke->keys().nonces.base.view());
  const hash32 binding = m->binding(token);
  key_bytes cek(size_t{16});
  EXPECT_TRUE(hpke->open(wrap_aad(binding, m->chunks), e.wrapped, cek.data()));
  add("cek", cek.view());
  key_bytes answer = hpke->keys().export_key(as_bytes(answer_label), 16);
  add("exported secret", answer.view());
  auto add_chunk_keys = [&](const char* prk_name, const char* key_name, const char* iv_name,
                            bytes_view salt, bytes_view secret) {
    key_bytes prk = hkdf_extract(salt, {secret});
    add(prk_name, prk.view());
    add(key_name, hkdf_expand(prk.view(), {as_bytes("key")}, 16).view());
    add(iv_name, hkdf_expand(prk.view(), {as_bytes("nonce")}, 12).view());
  };
  add_chunk_keys("request prk", "request key", "request iv", binding, cek.view());
  add_chunk_keys("answer prk", "answer key", "answer iv", joined({e.enc, answer_nonce}),
                 answer.view());
  return all;
}

struct exchanged {
  std::optional<opened_request> node;
  std::optional<answer_opener> client;
  bytes message, nonce, stream;
};

[[gnu::noinline]] exchanged half_an_exchange(const node_key& key) {
  exchanged x;
  const node_public known[] = {key.published()};
  auto sealed = seal_request(as_bytes("question"), known, now, token);
  x.message = sealed->message;
  x.client.emplace(std::move(sealed->answer));
  x.node.emplace(*open_request(key, x.message, now, token, std::pmr::get_default_resource()));
  x.nonce = copy_of(x.node->answer.first());
  x.stream = x.nonce;
  EXPECT_TRUE(x.node->answer.seal(as_bytes("answer"), false, x.stream));
  std::pmr::string plain;
  EXPECT_TRUE(x.client->push(x.stream, plain));
  x.stream.clear();
  return x;
}

[[gnu::noinline]] void finish(exchanged& x, const node_key& key) {
  const receipt r{.token_hash = token, .request_hash = x.node->request_hash, .epoch = now};
  EXPECT_TRUE(x.node->answer.seal(sign_receipt(key, r), true, x.stream));
  std::pmr::string plain;
  EXPECT_TRUE(x.client->push(x.stream, plain));
  EXPECT_TRUE(x.client->finish());
}

using CryptoForgets = memory_search;

TEST_F(CryptoForgets, EveryKeyOfAnExchangeWhenItEnds) {
  node_key key = key_of_test();
  exchanged x = half_an_exchange(key);
  // While the exchange lives the same search finds what both ends still need, and no more.
  size_t living = 0;
  for (const auto& n : secrets_of(key, x.message, x.nonce)) {
    const size_t found = count_everywhere(n.value);
    const bool needed =
        std::string_view(n.name).starts_with("answer ") && std::string_view(n.name) != "answer prk";
    if (needed)
      living += found;
    else
      EXPECT_EQ(found, 0u) << n.name;
  }
  EXPECT_GE(living, 4u) << "key and iv, at both ends";
  finish(x, key);
  // Sealer and opener are still there: their keys went with the final chunk.
  for (const auto& n : secrets_of(key, x.message, x.nonce))
    EXPECT_EQ(count_everywhere(n.value), 0u) << n.name;
}

TEST_F(CryptoForgets, EveryKeyOfAnExchangeThatIsDropped) {
  node_key key = key_of_test();
  bytes message, nonce;
  {
    exchanged x = half_an_exchange(key);
    message = x.message;
    nonce = x.nonce;
  }
  for (const auto& n : secrets_of(key, message, nonce))
    EXPECT_EQ(count_everywhere(n.value), 0u) << n.name;
}

TEST_F(CryptoForgets, ANodesKeyWhenItIsDropped) {
  // DeriveKeyPair once more, to know what to look for.
  auto private_key = [] {
    const std::array kem{std::byte{'K'}, std::byte{'E'}, std::byte{'M'}, std::byte{},
                         std::byte{32}};
    labeled_hkdf hkdf{kem};
    key_bytes prk = hkdf.extract({}, "dkp_prk", random_bytes(32, 41));
    return needle(hkdf.expand(prk.view(), "sk", {}, {}, 32).view());
  }();
  {
    node_key key = key_of_test();
    EXPECT_GE(count_everywhere(private_key), 1u) << "the negative control";
    node_key moved = std::move(key);
    EXPECT_EQ(count_everywhere(private_key), 1u) << "in one place";
  }
  EXPECT_EQ(count_everywhere(private_key), 0u);
}

}  // namespace
}  // namespace lethe

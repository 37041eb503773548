// After a request and its answer are gone, none of their keys is in the process's memory.

#include <map>

#include "crypto_memory.hpp"
#include "crypto_ohttp_samples.hpp"
#include "runtime/crypto/labeled_hkdf.hpp"

namespace lethe {
namespace {

using namespace test;

hpke_key gateway_key() { return *hpke_key::derive(0x20, random_bytes(32, 51)); }

ohttp_keys gateway_keys() {
  return *ohttp_keys::make({.grace = grace}, gateway_key(), *hpke_key::make(0x20));
}

/// Every secret of an exchange, worked out once more from the gateway's key.
[[gnu::noinline]] std::vector<named_needle> secrets_of(ohttp_form form, bytes_view request,
                                                       bytes_view nonce) {
  std::vector<named_needle> all;
  auto add = [&all](const char* name, bytes_view b) { all.push_back({name, needle(b)}); };
  const auto head = ohttp_head::from_bytes(request.first<ohttp_head::wire_bytes>());
  bytes_view enc = request.subspan(ohttp_head::wire_bytes, 32);
  hpke_key key = gateway_key();
  auto shared = key.shared_with_sender(enc);
  add("shared secret", shared->view());
  auto hpke = hpke_receiver::make(head.suite, key, enc, head.info(form));
  add("exporter secret", hpke->keys().exporter.view());
  // The key itself stays in no object of ours: derived again.
  std::array<std::byte, 10> id = hpke->keys().suite_id;
  labeled_hkdf hkdf{id};
  const bytes context = joined({bytes(1), hkdf.extract({}, "psk_id_hash", {}).view(),
                                hkdf.extract({}, "info_hash", head.info(form)).view()});
  key_bytes secret = hkdf.extract(shared->view(), "secret", {});
  add("hpke secret", secret.view());
  add("request key", hkdf.expand(secret.view(), "key", context, {}, 16).view());
  auto x = ohttp_exchange::of(form, head.suite, enc, hpke->keys());
  add("answer secret", x.secret.view());
  key_bytes prk = hkdf_extract(x.salt(nonce), {x.secret.view()});
  add("answer prk", prk.view());
  add("answer key", hkdf_expand(prk.view(), {as_bytes("key")}, 16).view());
  return all;
}

struct exchanged {
  std::optional<ohttp_request_sealer> client;
  std::optional<ohttp_request_opener> gateway;
  std::optional<ohttp_answer_sealer> answer;
  std::optional<ohttp_answer_opener> back;
  bytes request, stream, nonce = random_bytes(16, 8);
  std::pmr::string plain;
};

using OhttpForgets = memory_search;

/// How often each is there, by name.
std::map<std::string, size_t> found(ohttp_form form, const exchanged& x) {
  std::map<std::string, size_t> all;
  for (const auto& n : secrets_of(form, x.request, x.nonce))
    all[n.name] = count_everywhere(n.value);
  return all;
}

[[gnu::noinline]] void begin_request(exchanged& x, const ohttp_keys& keys) {
  auto to = read_ohttp_keys(keys.published())->front();
  x.client.emplace(*ohttp_request_sealer::make(to, ohttp_form::chunked));
  EXPECT_TRUE(x.client->seal(as_bytes("ques"), false, x.request));
  x.gateway.emplace(keys, ohttp_form::chunked, 0);
  EXPECT_TRUE(x.gateway->push(x.request, x.plain));
}

[[gnu::noinline]] void end_request(exchanged& x) {
  bytes more;
  EXPECT_TRUE(x.client->seal(as_bytes("tion"), true, more));
  EXPECT_TRUE(x.gateway->push(more, x.plain));
  auto exchange = x.gateway->finish(x.plain);
  ASSERT_TRUE(exchange);
  x.answer.emplace(*std::move(exchange), x.nonce);
  x.back.emplace(*x.client->answer());
}

[[gnu::noinline]] void begin_answer(exchanged& x) {
  EXPECT_TRUE(x.answer->seal(as_bytes("ans"), false, x.stream));
  EXPECT_TRUE(x.back->push(x.stream, x.plain));
}

[[gnu::noinline]] void end_answer(exchanged& x, bool fails) {
  bytes more;
  EXPECT_TRUE(x.answer->seal(as_bytes("wer"), true, more));
  if (fails) more.back() ^= std::byte{1};
  EXPECT_TRUE(x.back->push(more, x.plain));
  EXPECT_EQ(bool(x.back->finish(x.plain)), !fails);
}

TEST_F(OhttpForgets, EveryKeyAsSoonAsItIsNotNeeded) {
  auto keys = gateway_keys();
  for (bool fails : {false, true}) {
    exchanged x;
    using counts = std::map<std::string, size_t>;
    auto expect = [&x](const char* when, const counts& there) {
      for (const auto& [name, n] : found(ohttp_form::chunked, x)) {
        const auto at = there.find(name);
        EXPECT_EQ(n, at == there.end() ? 0 : at->second) << name << ' ' << when;
      }
    };
    begin_request(x, keys);
    // While they live the same search finds what both ends still need, and no more.
    expect("within the request", {{"request key", 2}, {"answer secret", 2}});
    end_request(x);
    expect("between", {{"answer secret", 1}, {"answer key", 1}});
    begin_answer(x);
    expect("within the answer", {{"answer key", 2}});
    end_answer(x, fails);
    expect("at the end", {});
  }
}

TEST_F(OhttpForgets, EveryKeyOfAnExchangeThatIsDropped) {
  auto keys = gateway_keys();
  bytes request, nonce;
  {
    exchanged x;
    begin_request(x, keys);
    end_request(x);
    begin_answer(x);
    request = x.request;
    nonce = x.nonce;
  }
  for (const auto& n : secrets_of(ohttp_form::chunked, request, nonce))
    EXPECT_EQ(count_everywhere(n.value), 0u) << n.name;
}

TEST_F(OhttpForgets, EveryKeyOfARequestThatIsRefused) {
  auto keys = gateway_keys();
  for (ohttp_form form : both_forms) {
    exchanged x;
    auto to = read_ohttp_keys(keys.published())->front();
    x.client.emplace(*ohttp_request_sealer::make(to, form));
    EXPECT_TRUE(x.client->seal(as_bytes("question"), true, x.request));
    x.client.reset();
    x.request.back() ^= std::byte{1};
    x.gateway.emplace(keys, form, 0);
    EXPECT_TRUE(x.gateway->push(x.request, x.plain));
    EXPECT_GE(found(form, x)["request key"], 1u) << "the negative control";
    EXPECT_FALSE(x.gateway->finish(x.plain));
    for (const auto& [name, n] : found(form, x)) EXPECT_EQ(n, 0u) << name;
  }
}

TEST_F(OhttpForgets, EveryKeyOfAMessageThatIsTooLarge) {
  auto keys = gateway_keys();
  exchanged x;
  auto to = read_ohttp_keys(keys.published())->front();
  x.client.emplace(*ohttp_request_sealer::make(to, ohttp_form::whole));
  EXPECT_TRUE(x.client->seal(as_bytes("question"), true, x.request));
  auto take = [&x](auto& opener, bytes_view content, const char* key) {
    EXPECT_TRUE(opener.push(content, x.plain));
    EXPECT_EQ(found(ohttp_form::whole, x)[key], 1u) << "the negative control";
    EXPECT_FALSE(opener.push(content, x.plain));
    EXPECT_EQ(opener.refusal(), ohttp_refusal::too_large);
    EXPECT_EQ(found(ohttp_form::whole, x)[key], 0u);
  };
  x.gateway.emplace(keys, ohttp_form::whole, 0, x.request.size());
  take(*x.gateway, x.request, "request key");
  auto hpke = hpke_receiver::make({}, gateway_key(), bytes_view(x.request).subspan(7, 32),
                                  ohttp_head{.key_id = 1}.info(ohttp_form::whole));
  const bytes_view enc = bytes_view(x.request).subspan(7, 32);
  ohttp_answer_opener back(ohttp_exchange::of(ohttp_form::whole, {}, enc, hpke->keys()), 30);
  take(back, x.nonce, "answer key");
}

TEST_F(OhttpForgets, AGatewaysKeyWhenItsGraceIsOver) {
  // DeriveKeyPair once more, to know what to look for.
  auto private_key = [] {
    const bytes kem = joined({as_bytes("KEM"), from_hex("0020")});
    labeled_hkdf hkdf{kem};
    key_bytes prk = hkdf.extract({}, "dkp_prk", random_bytes(32, 51));
    return needle(hkdf.expand(prk.view(), "sk", {}, {}, 32).view());
  }();
  auto keys = gateway_keys();
  EXPECT_EQ(count_everywhere(private_key), 1u) << "the negative control";
  ASSERT_TRUE(keys.rotate(10));
  keys.forget(10 + grace - 1);
  EXPECT_EQ(count_everywhere(private_key), 1u) << "in its grace";
  keys.forget(10 + grace);
  EXPECT_EQ(count_everywhere(private_key), 0u);
}

}  // namespace
}  // namespace lethe

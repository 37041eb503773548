// Requests of oblivious HTTP that a gateway opens per second of one core (key lookup, seal, memory
// of replays, the answer's secret), against the bare operations of OpenSSL that one needs: an
// X25519 agreement, nine HMACs, one AES-GCM. Both take the same requests by turns, and must read
// the same in them. Prints one line of JSON per size.

#include <fmt/format.h>
#include <openssl/core_names.h>
#include <openssl/params.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ctime>

#include "runtime/crypto/ohttp_request.hpp"
#include "runtime/crypto/random.hpp"

namespace lethe {
namespace {

using bytes = std::vector<std::byte>;
using block = std::array<std::byte, 32>;
constexpr size_t rounds = 31, requests_a_round = 100;

/// Of a core, for this thread: others on the machine don't count.
double core_seconds() {
  timespec t;
  check(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

/// HPKE with nothing around it: what is made once is made before.
class bare_gateway {
 public:
  explicit bare_gateway(bytes_view private_key)
      : key_(EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, nullptr,
                                          openssl::uchars(private_key.data()), 32)) {
    openssl::mac kind(EVP_MAC_fetch(nullptr, "HMAC", nullptr));
    mac_.reset(EVP_MAC_CTX_new(kind.get()));
    char digest[] = "SHA256";
    const OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
                                 OSSL_PARAM_construct_end()};
    check(key_ && mac_ && EVP_MAC_CTX_set_params(mac_.get(), params) == 1);
    size_t size = public_.size();
    check(EVP_PKEY_get_raw_public_key(key_.get(), openssl::uchars(public_.data()), &size) == 1);
  }

  /// Appends the plaintext, and the secret of the answer.
  void open(bytes_view message, bytes& out) {
    bytes_view head = message.first(7), enc = message.subspan(7, 32), sealed = message.subspan(39);
    block dh;
    agree(enc, dh);
    const block eae = hmac(zeroes, {v1, kem, as_bytes("eae_prk"), dh});
    const block shared = expand(eae, 32, {v1, kem, as_bytes("shared_secret"), enc, public_});
    bytes suite(as_bytes("HPKE").begin(), as_bytes("HPKE").end());
    suite.insert(suite.end(), head.begin() + 1, head.end());
    const bytes_view label = as_bytes(std::string_view("message/bhttp request\0", 22));
    const block psk = hmac(zeroes, {v1, suite, as_bytes("psk_id_hash")});
    const block info = hmac(zeroes, {v1, suite, as_bytes("info_hash"), label, head});
    const std::byte base{};
    const bytes_view mode(&base, 1);
    const block secret = hmac(shared, {v1, suite, as_bytes("secret")});
    const block key = expand(secret, 16, {v1, suite, as_bytes("key"), mode, psk, info});
    const block nonce = expand(secret, 12, {v1, suite, as_bytes("base_nonce"), mode, psk, info});
    const block exporter = expand(secret, 32, {v1, suite, as_bytes("exp"), mode, psk, info});
    const block answer =
        expand(exporter, 16, {v1, suite, as_bytes("sec"), as_bytes("message/bhttp response")});
    decrypt(key, nonce, sealed, out);
    out.insert(out.end(), answer.begin(), answer.begin() + 16);
  }

 private:
  static constexpr block zeroes{};
  static constexpr std::array kem{std::byte{'K'}, std::byte{'E'}, std::byte{'M'}, std::byte{0},
                                  std::byte{0x20}};
  const bytes_view v1 = as_bytes("HPKE-v1");

  void agree(bytes_view enc, block& out) {
    openssl::key peer(EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, nullptr,
                                                  openssl::uchars(enc.data()), enc.size()));
    openssl::key_context c(EVP_PKEY_CTX_new(key_.get(), nullptr));
    size_t size = out.size();
    check(EVP_PKEY_derive_init(c.get()) == 1 &&
          EVP_PKEY_derive_set_peer(c.get(), peer.get()) == 1 &&
          EVP_PKEY_derive(c.get(), openssl::uchars(out.data()), &size) == 1);
  }
  block hmac(bytes_view key, std::initializer_list<bytes_view> parts, bytes_view first = {},
             bytes_view last = {}) {
    block out;
    size_t size = 0;
    check(EVP_MAC_init(mac_.get(), openssl::uchars(key.data()), key.size(), nullptr) == 1);
    auto add = [this](bytes_view p) {
      check(EVP_MAC_update(mac_.get(), openssl::uchars(p.data()), p.size()) == 1);
    };
    add(first);
    for (bytes_view part : parts) add(part);
    add(last);
    check(EVP_MAC_final(mac_.get(), openssl::uchars(out.data()), &size, out.size()) == 1);
    return out;
  }
  block expand(const block& prk, uint8_t size, std::initializer_list<bytes_view> parts) {
    const std::array length{std::byte{0}, std::byte{size}};
    const std::byte one{1};
    return hmac(prk, parts, length, {&one, 1});
  }
  static void decrypt(const block& key, const block& nonce, bytes_view sealed, bytes& out) {
    openssl::cipher_context c(EVP_CIPHER_CTX_new());
    const size_t size = sealed.size() - 16, at = out.size();
    out.resize(at + size);
    block tag;
    std::ranges::copy(sealed.last(16), tag.begin());
    int n = 0;
    check(EVP_DecryptInit_ex(c.get(), EVP_aes_128_gcm(), nullptr, openssl::uchars(key.data()),
                             openssl::uchars(nonce.data())) == 1 &&
          EVP_DecryptUpdate(c.get(), openssl::uchars(out.data() + at), &n,
                            openssl::uchars(sealed.data()), int(size)) == 1 &&
          EVP_CIPHER_CTX_ctrl(c.get(), EVP_CTRL_AEAD_SET_TAG, 16, tag.data()) == 1 &&
          EVP_DecryptFinal_ex(c.get(), openssl::uchars(tag.data()), &n) == 1);
  }

  openssl::key key_;
  openssl::mac_context mac_;
  block public_;
};

void open_ours(const ohttp_keys& keys, bytes_view message, std::pmr::string& out) {
  ohttp_request_opener opener(keys, ohttp_form::whole, 0);
  check(bool(opener.push(message, out)));
  auto exchange = opener.finish(out);
  check(bool(exchange));
  out.append(as_text(exchange->secret.view()));
}

void measure(size_t size) {
  bytes private_key(32), plain(size);
  fill_random(private_key);
  fill_random(plain);
  auto keys = ohttp_keys::make({}, *hpke_key::from_private(0x20, private_key),
                               *hpke_key::make(hpke_key::kem_x25519));
  check(bool(keys));
  const ohttp_config to = read_ohttp_keys(keys->published())->front();
  bare_gateway bare(private_key);
  std::vector<double> ours, theirs, ratios;
  for (size_t round = 0; round < rounds; ++round) {
    std::vector<bytes> messages;
    for (size_t i = 0; i < requests_a_round; ++i)
      messages.push_back(seal_ohttp_request(to, plain)->message);
    std::pmr::string said;
    bytes bare_said;
    said.reserve(requests_a_round * (size + 16));
    bare_said.reserve(requests_a_round * (size + 16));
    double our_seconds = 0, bare_seconds = 0;
    for (const bytes& m : messages) {
      const double begin = core_seconds();
      open_ours(*keys, m, said);
      const double between = core_seconds();
      bare.open(m, bare_said);
      our_seconds += between - begin;
      bare_seconds += core_seconds() - between;
    }
    check(std::ranges::equal(as_bytes(said), bare_said) && as_bytes(said).size() > size &&
          std::ranges::equal(as_bytes(said).first(size), plain));
    if (round == 0) continue;  // to warm up
    ours.push_back(requests_a_round / our_seconds);
    theirs.push_back(requests_a_round / bare_seconds);
    ratios.push_back(bare_seconds / our_seconds);
  }
  auto at = [](std::vector<double>& v, double p) {
    std::ranges::sort(v);
    return v[size_t(p * double(v.size() - 1))];
  };
  fmt::print(
      "{{\"what\":\"decapsulation\",\"bytes\":{},\"rounds\":{},\"per_second\":{:.0f},"
      "\"bare_per_second\":{:.0f},\"ratio\":{:.2f},\"ratio_p10\":{:.2f},\"ratio_p90\":{:.2f}}}\n",
      size, ratios.size(), at(ours, 0.5), at(theirs, 0.5), at(ratios, 0.5), at(ratios, 0.1),
      at(ratios, 0.9));
}

}  // namespace
}  // namespace lethe

int main(int argc, char** argv) {
  CLI::App app("Requests of oblivious HTTP opened per second");
  std::vector<size_t> sizes = {1024, 16384, 262144};
  app.add_option("bytes", sizes, "sizes of the plaintext")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  for (size_t size : sizes) lethe::measure(size);
}

#include "runtime/token/token_key.hpp"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <algorithm>

namespace lethe {

namespace {

template <class... Bytes>
constexpr auto der(Bytes... bytes) {
  return std::array<std::byte, sizeof...(bytes)>{std::byte(bytes)...};
}

/// All before the modulus ...
constexpr auto spki_head =
    der(0x30, 0x82, 0x01, 0x52,  // SEQUENCE: 338 bytes follow
        0x30, 0x3d,              // AlgorithmIdentifier
        0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0a,  // id-RSASSA-PSS
        0x30, 0x30,                                                        // RSASSA-PSS-params
        0xa0, 0x0d, 0x30, 0x0b, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02,
        0x02,                                                              // [0] SHA-384
        0xa1, 0x1a, 0x30, 0x18,                                            // [1] mask generation
        0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x08,  // MGF1
        0x30, 0x0b, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x02,  // SHA-384
        0xa2, 0x03, 0x02, 0x01, 0x30,   // [2] salt: 48 bytes
        0x03, 0x82, 0x01, 0x0f, 0x00,   // BIT STRING of whole bytes
        0x30, 0x82, 0x01, 0x0a,         // RSAPublicKey
        0x02, 0x82, 0x01, 0x01, 0x00);  // modulus: a zero before 256 bytes
/// ... and after it.
constexpr auto spki_tail = der(0x02, 0x03, 0x01, 0x00, 0x01);  // 65537

static_assert(spki_head.size() + token_modulus_bytes + spki_tail.size() == token_spki_bytes);

bytes_view modulus_in(const token_spki& spki) {
  return bytes_view(spki).subspan(spki_head.size(), token_modulus_bytes);
}

}  // namespace

result<token_spki> read_spki(bytes_view bytes) {
  if (bytes.size() != token_spki_bytes)
    return fail("token key: {} bytes; a key of type 2 has {}", bytes.size(), token_spki_bytes);
  token_spki spki;
  std::ranges::copy(bytes, spki.begin());
  if (!std::ranges::equal(bytes.first<spki_head.size()>(), spki_head) ||
      !std::ranges::equal(bytes.last<spki_tail.size()>(), spki_tail))
    return fail(
        "token key: it is not RSASSA-PSS of 2048 bits with SHA-384, MGF1-SHA384, salt 48 and "
        "exponent 65537");
  bytes_view n = modulus_in(spki);
  if ((n.front() & std::byte{0x80}) == std::byte{} || (n.back() & std::byte{1}) == std::byte{})
    return fail("token key: its modulus is even or has less than 2048 bits");
  return spki;
}

result<token_key> token_key::from_spki(bytes_view bytes) {
  auto spki = read_spki(bytes);
  if (!spki) return spki.why();
  auto rsa = rsa_public::from(modulus_in(*spki));
  if (!rsa) return rsa.why();
  return token_key(*spki, *std::move(rsa));
}

result<token_key> token_key::from_modulus(bytes_view modulus) {
  if (modulus.size() != token_modulus_bytes)
    return fail("token key: a modulus of {} bytes; RSA-2048 has {}", modulus.size(),
                token_modulus_bytes);
  token_spki spki;
  auto at = std::ranges::copy(spki_head, spki.begin()).out;
  at = std::ranges::copy(modulus, at).out;
  std::ranges::copy(spki_tail, at);
  return from_spki(spki);
}

issuer_key issuer_key::make() {
  auto made = from(blind_signer::make());
  check(bool(made));
  return *std::move(made);
}

result<issuer_key> issuer_key::from(blind_signer signer) {
  auto published = token_key::from_modulus(signer.published().modulus());
  if (!published) return published.why();
  return issuer_key(std::move(signer), *std::move(published));
}

result<issuer_key> issuer_key::from_pem(std::string_view pem) {
  openssl::bio in(BIO_new_mem_buf(pem.data(), int(pem.size())));
  char none[] = "";  // a protected key is an error, not a question on the terminal
  openssl::key key(in ? PEM_read_bio_PrivateKey(in.get(), nullptr, nullptr, none) : nullptr);
  ERR_clear_error();
  if (!key) return fail("issuer key: not a private key in PEM without passphrase");
  auto signer = blind_signer::from(std::move(key));
  if (!signer) return signer.why();
  return from(*std::move(signer));
}

secret_bytes issuer_key::pem() const {
  openssl::bio out(BIO_new(BIO_s_secmem()));
  check(out && PEM_write_bio_PKCS8PrivateKey(out.get(), signer_.key(), nullptr, nullptr, 0, nullptr,
                                             nullptr) == 1);
  char* text = nullptr;
  const long size = BIO_get_mem_data(out.get(), &text);
  return secret_bytes(as_bytes({text, size_t(size)}));
}

result<token_signature> issuer_key::sign(bytes_view blinded) const {
  auto signed_bytes = signer_.sign(blinded);
  if (!signed_bytes) return signed_bytes.why();
  token_signature out;
  std::ranges::copy(*signed_bytes, out.begin());
  return out;
}

}  // namespace lethe

#include "runtime/token/blind_rsa.hpp"

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/rsa.h>

#include <array>

#include "runtime/crypto/key_bytes.hpp"
#include "runtime/crypto/random.hpp"

namespace lethe {

result<blinding> blinding::make(const rsa_public& key, bytes_view message) {
  key_bytes salt(pss_salt_bytes);
  fill_random(salt.bytes());
  return make(key, message, salt.view(), key.random());
}

result<blinding> blinding::make(const rsa_public& key, bytes_view message,
                                const blind_choices& choices) {
  if (!key.holds(choices.factor))
    return fail("blinding: its factor is not below the modulus of {} bytes", key.bytes());
  if (choices.salt.size() > pss_salt_bytes)
    return fail("blinding: a salt of {} bytes; at most {}", choices.salt.size(), pss_salt_bytes);
  return make(key, message, choices.salt, openssl::number_from(choices.factor));
}

result<blinding> blinding::make(const rsa_public& key, bytes_view message, bytes_view salt,
                                openssl::number factor) {
  auto context = openssl::new_number_context();
  BN_CTX* c = context.get();
  secret_bytes encoded = pss_encode(message, salt, key.bytes());
  openssl::number m = openssl::number_from(encoded.view());
  // One inversion, of m·r, shows that both have an inverse and gives that of r.
  openssl::number both = key.inverse(key.product(m.get(), factor.get(), c).get(), c);
  if (!both) return fail("blinding: a number shares a factor with the modulus; choose again");
  blinding made;
  made.inverse_ = key.product(both.get(), m.get(), c);
  made.salt_bytes_ = salt.size();
  made.blinded_.resize(key.bytes());
  openssl::number_to(key.product(m.get(), key.power(factor.get(), c).get(), c).get(),
                     made.blinded_);
  return made;
}

result<std::vector<std::byte>> blinding::finalize(const rsa_public& key, bytes_view message,
                                                  bytes_view blind_signature) const {
  if (!key.holds(blind_signature))
    return fail("blind signature: {} bytes that are not below the modulus of {}",
                blind_signature.size(), key.bytes());
  auto context = openssl::new_number_context();
  openssl::number z = openssl::number_from(blind_signature);
  std::vector<std::byte> signature(key.bytes());
  openssl::number_to(key.product(z.get(), inverse_.get(), context.get()).get(), signature);
  if (key.verifies(message, signature, salt_bytes_)) return signature;
  wipe(signature.data(), signature.size());
  return fail("blind signature: it is not one of this key over this message");
}

blind_signer blind_signer::make() {
  auto made = from(openssl::key(EVP_RSA_gen(2048)));
  check(bool(made));
  return *std::move(made);
}

result<blind_signer> blind_signer::from(openssl::key key) {
  check(key != nullptr);
  if (EVP_PKEY_is_a(key.get(), "RSA") != 1) return fail("signing key: it is not one of RSA");
  BIGNUM *n = nullptr, *e = nullptr;
  const bool has = EVP_PKEY_get_bn_param(key.get(), OSSL_PKEY_PARAM_RSA_N, &n) == 1 &&
                   EVP_PKEY_get_bn_param(key.get(), OSSL_PKEY_PARAM_RSA_E, &e) == 1;
  openssl::number modulus(n), exponent(e);
  if (!has || BN_is_word(exponent.get(), 65537) != 1)
    return fail("signing key: its public exponent is not 65537");
  std::vector<std::byte> bytes(size_t(BN_num_bytes(modulus.get())));
  openssl::number_to(modulus.get(), bytes);
  auto published = rsa_public::from(bytes);
  if (!published) return published.why();
  blind_signer made(std::move(key), *std::move(published));
  std::vector<std::byte> trial(bytes.size());
  fill_random(trial);
  trial[0] = {};  // below any modulus of that size
  if (auto signs = made.sign(trial); !signs) return signs.why();
  return made;
}

result<std::vector<std::byte>> blind_signer::sign(bytes_view blinded) const {
  if (!public_.holds(blinded))
    return fail("blinded message: {} bytes that are not below the modulus of {}", blinded.size(),
                public_.bytes());
  // OpenSSL blinds the exponentiation of a raw decryption.
  openssl::key_context context(EVP_PKEY_CTX_new_from_pkey(nullptr, key_.get(), nullptr));
  std::vector<std::byte> out(public_.bytes());
  size_t size = out.size();
  const bool done = context && EVP_PKEY_decrypt_init(context.get()) == 1 &&
                    EVP_PKEY_CTX_set_rsa_padding(context.get(), RSA_NO_PADDING) == 1 &&
                    EVP_PKEY_decrypt(context.get(), openssl::uchars(out.data()), &size,
                                     openssl::uchars(blinded.data()), blinded.size()) == 1 &&
                    size == out.size();
  if (done && public_.is_raw_signature(out, blinded)) return out;
  ERR_clear_error();
  wipe(out.data(), out.size());
  return fail("signing key: what it signs does not verify; is its private half its own?");
}

}  // namespace lethe

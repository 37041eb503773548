#include "runtime/token/rsa_public.hpp"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/param_build.h>
#include <openssl/rsa.h>

#include <array>

namespace lethe {

namespace {

constexpr unsigned long public_exponent = 65537;

openssl::key key_of(const BIGNUM* n, const BIGNUM* e) {
  using builder = std::unique_ptr<OSSL_PARAM_BLD, openssl::releaser<OSSL_PARAM_BLD_free>>;
  using params = std::unique_ptr<OSSL_PARAM, openssl::releaser<OSSL_PARAM_free>>;
  builder build(OSSL_PARAM_BLD_new());
  check(build && OSSL_PARAM_BLD_push_BN(build.get(), OSSL_PKEY_PARAM_RSA_N, n) == 1 &&
        OSSL_PARAM_BLD_push_BN(build.get(), OSSL_PKEY_PARAM_RSA_E, e) == 1);
  params numbers(OSSL_PARAM_BLD_to_param(build.get()));
  openssl::key_context context(EVP_PKEY_CTX_new_from_name(nullptr, "RSA", nullptr));
  EVP_PKEY* made = nullptr;
  check(numbers && context && EVP_PKEY_fromdata_init(context.get()) == 1 &&
        EVP_PKEY_fromdata(context.get(), &made, EVP_PKEY_PUBLIC_KEY, numbers.get()) == 1);
  return openssl::key(made);
}

}  // namespace

result<rsa_public> rsa_public::from(bytes_view modulus) {
  if (modulus.size() < modulus_bytes_min || modulus.size() > modulus_bytes_max)
    return fail("rsa key: a modulus of {} bytes; {} to {} are accepted", modulus.size(),
                modulus_bytes_min, modulus_bytes_max);
  if ((modulus.front() & std::byte{0x80}) == std::byte{})
    return fail("rsa key: its modulus does not fill its {} bytes", modulus.size());
  if ((modulus.back() & std::byte{1}) == std::byte{}) return fail("rsa key: its modulus is even");
  rsa_public made;
  made.modulus_.assign(modulus.begin(), modulus.end());
  made.n_.reset(BN_bin2bn(openssl::uchars(modulus.data()), int(modulus.size()), nullptr));
  made.e_.reset(BN_new());
  made.mont_.reset(BN_MONT_CTX_new());
  check(made.n_ && made.e_ && made.mont_ && BN_set_word(made.e_.get(), public_exponent) == 1);
  auto context = openssl::new_number_context();
  check(BN_MONT_CTX_set(made.mont_.get(), made.n_.get(), context.get()) == 1);
  made.key_ = key_of(made.n_.get(), made.e_.get());
  return made;
}

bool rsa_public::holds(bytes_view number) const noexcept {
  return number.size() == bytes() && std::memcmp(number.data(), modulus_.data(), bytes()) < 0;
}

bool rsa_public::verifies(bytes_view message, bytes_view signature, size_t salt_bytes) const {
  if (!holds(signature)) return false;
  openssl::digest_context context(EVP_MD_CTX_new());
  EVP_PKEY_CTX* how = nullptr;  // the context's
  check(context &&
        EVP_DigestVerifyInit(context.get(), &how, EVP_sha384(), nullptr, key_.get()) == 1 &&
        EVP_PKEY_CTX_set_rsa_padding(how, RSA_PKCS1_PSS_PADDING) == 1 &&
        EVP_PKEY_CTX_set_rsa_mgf1_md(how, EVP_sha384()) == 1 &&
        EVP_PKEY_CTX_set_rsa_pss_saltlen(how, int(salt_bytes)) == 1);
  const bool good =
      EVP_DigestVerify(context.get(), openssl::uchars(signature.data()), signature.size(),
                       openssl::uchars(message.data()), message.size()) == 1;
  if (!good) ERR_clear_error();
  return good;
}

bool rsa_public::is_raw_signature(bytes_view signature, bytes_view number) const {
  if (!holds(signature) || !holds(number)) return false;
  auto context = openssl::new_number_context();
  openssl::number s(BN_bin2bn(openssl::uchars(signature.data()), int(bytes()), nullptr));
  openssl::number raised(BN_new());
  check(s && raised &&
        BN_mod_exp_mont(raised.get(), s.get(), e_.get(), n_.get(), context.get(), mont_.get()) ==
            1);
  std::array<std::byte, modulus_bytes_max> out;
  openssl::number_to(raised.get(), {out.data(), bytes()});
  return CRYPTO_memcmp(out.data(), number.data(), bytes()) == 0;
}

openssl::number rsa_public::product(const BIGNUM* a, const BIGNUM* b, BN_CTX* context) const {
  auto raised = openssl::new_secret_number(), out = openssl::new_secret_number();
  check(BN_to_montgomery(raised.get(), a, mont_.get(), context) == 1 &&
        BN_mod_mul_montgomery(out.get(), raised.get(), b, mont_.get(), context) == 1);
  return out;
}

openssl::number rsa_public::power(const BIGNUM* a, BN_CTX* context) const {
  auto out = openssl::new_secret_number();
  check(BN_mod_exp_mont_consttime(out.get(), a, e_.get(), n_.get(), context, mont_.get()) == 1);
  return out;
}

openssl::number rsa_public::inverse(const BIGNUM* a, BN_CTX* context) const {
  auto out = openssl::new_secret_number();
  if (BN_mod_inverse(out.get(), a, n_.get(), context) != nullptr) return out;
  ERR_clear_error();
  return {};
}

openssl::number rsa_public::random() const {
  auto out = openssl::new_secret_number();
  check(BN_priv_rand_range(out.get(), n_.get()) == 1);
  return out;
}

}  // namespace lethe

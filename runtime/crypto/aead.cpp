#include "runtime/crypto/aead.hpp"

#include <openssl/err.h>

#include <climits>

namespace lethe {

namespace {

const EVP_CIPHER* cipher_of(aead_id id) {
  switch (id) {
    case aead_id::aes_128_gcm:
      return EVP_aes_128_gcm();
    case aead_id::aes_256_gcm:
      return EVP_aes_256_gcm();
    case aead_id::chacha20_poly1305:
      return EVP_chacha20_poly1305();
  }
  return nullptr;
}

}  // namespace

aead_nonce nonce_counter::current() const noexcept {
  aead_nonce nonce;
  check(base.size() == nonce.size());
  std::copy_n(base.view().begin(), nonce.size(), nonce.begin());
  for (size_t i = 0; i < sizeof next; ++i)
    nonce[nonce.size() - 1 - i] ^= std::byte(uint8_t(next >> (8 * i)));
  return nonce;
}

aead::aead(aead_id id, bytes_view key, int seals) : context_(EVP_CIPHER_CTX_new()) {
  check(key.size() == aead_key_bytes(id));
  check(context_ && EVP_CipherInit_ex(context_.get(), cipher_of(id), nullptr,
                                      openssl::uchars(key.data()), nullptr, seals) == 1);
}

void aead::seal(const aead_nonce& nonce, bytes_view aad, std::initializer_list<bytes_view> plain,
                std::byte* out) {
  EVP_CIPHER_CTX* c = context_.get();
  int n = 0;
  check(aad.size() < INT_MAX);
  check(EVP_EncryptInit_ex(c, nullptr, nullptr, nullptr, openssl::uchars(nonce.data())) == 1);
  check(aad.empty() ||
        EVP_EncryptUpdate(c, nullptr, &n, openssl::uchars(aad.data()), int(aad.size())) == 1);
  for (bytes_view part : plain) {
    if (part.empty()) continue;
    check(part.size() < INT_MAX);
    check(EVP_EncryptUpdate(c, openssl::uchars(out), &n, openssl::uchars(part.data()),
                            int(part.size())) == 1);
    out += part.size();
  }
  check(EVP_EncryptFinal_ex(c, openssl::uchars(out), &n) == 1 && n == 0);
  check(EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_GET_TAG, int(aead_tag_bytes), out) == 1);
}

bool aead::open(const aead_nonce& nonce, bytes_view aad, bytes_view sealed, std::byte* out) {
  if (sealed.size() < aead_tag_bytes || sealed.size() >= INT_MAX || aad.size() >= INT_MAX)
    return false;
  EVP_CIPHER_CTX* c = context_.get();
  size_t bytes = sealed.size() - aead_tag_bytes;
  std::array<std::byte, aead_tag_bytes> tag;  // OpenSSL wants it writable
  std::copy_n(sealed.begin() + ptrdiff_t(bytes), tag.size(), tag.begin());
  int n = 0;
  check(EVP_DecryptInit_ex(c, nullptr, nullptr, nullptr, openssl::uchars(nonce.data())) == 1 &&
        EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_TAG, int(tag.size()), tag.data()) == 1);
  bool good = (aad.empty() || EVP_DecryptUpdate(c, nullptr, &n, openssl::uchars(aad.data()),
                                                int(aad.size())) == 1) &&
              (bytes == 0 || EVP_DecryptUpdate(c, openssl::uchars(out), &n,
                                               openssl::uchars(sealed.data()), int(bytes)) == 1);
  unsigned char none[aead_tag_bytes];  // a stream cipher's last block is empty
  good = good && EVP_DecryptFinal_ex(c, none, &n) == 1;
  if (good) return true;
  wipe(out, bytes);
  ERR_clear_error();
  return false;
}

}  // namespace lethe

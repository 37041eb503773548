#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <cstddef>
#include <memory>

/// OpenSSL's objects with owners.
namespace lethe::openssl {

template <auto release>
struct releaser {
  template <class T>
  void operator()(T* object) const {
    release(object);
  }
};

using key = std::unique_ptr<EVP_PKEY, releaser<EVP_PKEY_free>>;
using certificate = std::unique_ptr<X509, releaser<X509_free>>;
using extension = std::unique_ptr<X509_EXTENSION, releaser<X509_EXTENSION_free>>;
using cipher_context = std::unique_ptr<EVP_CIPHER_CTX, releaser<EVP_CIPHER_CTX_free>>;
using digest_context = std::unique_ptr<EVP_MD_CTX, releaser<EVP_MD_CTX_free>>;
using key_context = std::unique_ptr<EVP_PKEY_CTX, releaser<EVP_PKEY_CTX_free>>;
using mac = std::unique_ptr<EVP_MAC, releaser<EVP_MAC_free>>;
using mac_context = std::unique_ptr<EVP_MAC_CTX, releaser<EVP_MAC_CTX_free>>;
using bio = std::unique_ptr<BIO, releaser<BIO_free_all>>;

inline unsigned char* uchars(std::byte* at) { return reinterpret_cast<unsigned char*>(at); }
inline const unsigned char* uchars(const std::byte* at) {
  return reinterpret_cast<const unsigned char*>(at);
}

}  // namespace lethe::openssl

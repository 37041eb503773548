#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

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
using bio = std::unique_ptr<BIO, releaser<BIO_free_all>>;

}  // namespace lethe::openssl

#pragma once

#include <string>

#include "runtime/base/result.hpp"
#include "runtime/crypto/openssl.hpp"

namespace lethe {

/// A certificate and its private key.
struct identity {
  openssl::key key;
  openssl::certificate certificate;
};

/// A self-signed authority that may sign hosts and nothing below them.
result<identity> make_authority(const std::string& name, uint32_t days);
/// A host of it, for both ends of a connection, by name and numeric address.
result<identity> make_host(const identity& authority, const std::string& name,
                           const std::string& address, uint32_t days);

/// Whom it was made for.
std::string name_in(X509* certificate);

/// PEM, and back.
std::string pem_of(X509* certificate);
std::string pem_of(EVP_PKEY* key);
result<identity> identity_of(const std::string& certificate_pem, const std::string& key_pem);

}  // namespace lethe

#include "runtime/crypto/certificate.hpp"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

namespace lethe {

namespace {

error openssl_failure(const char* what) {
  char text[256] = "unknown reason";
  if (unsigned long code = ERR_get_error()) ERR_error_string_n(code, text, sizeof text);
  ERR_clear_error();
  return fail("{}: {}", what, text);
}

bool extend(X509* to, X509* issuer, int what, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, to, nullptr, nullptr, 0);
  openssl::extension e(X509V3_EXT_conf_nid(nullptr, &context, what, value.c_str()));
  return e && X509_add_ext(to, e.get(), -1) == 1;
}

/// 127 random bits: serials are unique without a list of them.
bool set_serial(X509* to) {
  unsigned char bytes[16];
  if (RAND_bytes(bytes, sizeof bytes) != 1) return false;
  bytes[0] &= 0x7f;
  std::unique_ptr<BIGNUM, openssl::releaser<BN_free>> number(
      BN_bin2bn(bytes, sizeof bytes, nullptr));
  return number && BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(to));
}

/// Everything but extensions and signature. An hour of slack for clocks that are behind.
bool set_body(X509* to, X509_NAME* issuer, EVP_PKEY* key, const std::string& name, uint32_t days) {
  auto* text = reinterpret_cast<const unsigned char*>(name.data());
  X509_NAME* subject = X509_get_subject_name(to);
  return X509_set_version(to, 2) == 1 && set_serial(to) &&
         X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, text, int(name.size()), -1, 0) &&
         X509_set_issuer_name(to, issuer ? issuer : subject) == 1 &&
         X509_gmtime_adj(X509_getm_notBefore(to), -3600) &&
         X509_gmtime_adj(X509_getm_notAfter(to), long{86400} * days) &&
         X509_set_pubkey(to, key) == 1;
}

bool is_numeric(const std::string& address) {
  std::unique_ptr<ASN1_OCTET_STRING, openssl::releaser<ASN1_OCTET_STRING_free>> bytes(
      a2i_IPADDRESS(address.c_str()));
  return bytes != nullptr;
}

openssl::bio memory_bio(const std::string& text) {
  return openssl::bio(BIO_new_mem_buf(text.data(), int(text.size())));
}

std::string text_in(BIO* bio) {
  char* data = nullptr;
  long size = BIO_get_mem_data(bio, &data);
  return std::string(data, size_t(size));
}

}  // namespace

result<identity> make_authority(const std::string& name, uint32_t days) {
  identity made{openssl::key(EVP_EC_gen("P-256")), openssl::certificate(X509_new())};
  X509* c = made.certificate.get();
  if (!made.key || !c || !set_body(c, nullptr, made.key.get(), name, days) ||
      !extend(c, c, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
      !extend(c, c, NID_key_usage, "critical,keyCertSign,cRLSign") ||
      !extend(c, c, NID_subject_key_identifier, "hash") ||
      X509_sign(c, made.key.get(), EVP_sha256()) == 0)
    return openssl_failure("cannot make the cluster's authority");
  return made;
}

result<identity> make_host(const identity& authority, const std::string& name,
                           const std::string& address, uint32_t days) {
  identity made{openssl::key(EVP_EC_gen("P-256")), openssl::certificate(X509_new())};
  X509* c = made.certificate.get();
  X509* ca = authority.certificate.get();
  // A client of KJ compares names only, also where its URL has a number.
  std::string names = "DNS:" + name + ",DNS:" + address;
  if (is_numeric(address)) names += ",IP:" + address;
  if (!made.key || !c || !set_body(c, X509_get_subject_name(ca), made.key.get(), name, days) ||
      !extend(c, ca, NID_basic_constraints, "critical,CA:FALSE") ||
      !extend(c, ca, NID_key_usage, "critical,digitalSignature") ||
      !extend(c, ca, NID_ext_key_usage, "serverAuth,clientAuth") ||
      !extend(c, ca, NID_subject_alt_name, names) ||
      !extend(c, ca, NID_subject_key_identifier, "hash") ||
      !extend(c, ca, NID_authority_key_identifier, "keyid") ||
      X509_sign(c, authority.key.get(), EVP_sha256()) == 0)
    return openssl_failure("cannot make a host's certificate");
  return made;
}

std::string name_in(X509* certificate) {
  char name[256];
  int size = X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name,
                                       sizeof name);
  return size > 0 ? std::string(name, size_t(size)) : std::string();
}

std::string pem_of(X509* certificate) {
  openssl::bio out(BIO_new(BIO_s_mem()));
  check(PEM_write_bio_X509(out.get(), certificate) == 1);
  return text_in(out.get());
}

std::string pem_of(EVP_PKEY* key) {
  openssl::bio out(BIO_new(BIO_s_secmem()));
  check(PEM_write_bio_PrivateKey(out.get(), key, nullptr, nullptr, 0, nullptr, nullptr) == 1);
  return text_in(out.get());
}

result<identity> identity_of(const std::string& certificate_pem, const std::string& key_pem) {
  auto certificate = memory_bio(certificate_pem), key = memory_bio(key_pem);
  // An empty passphrase: a protected key is an error, not a question on the terminal.
  char none[] = "";
  identity read{
      openssl::key(PEM_read_bio_PrivateKey(key.get(), nullptr, nullptr, none)),
      openssl::certificate(PEM_read_bio_X509(certificate.get(), nullptr, nullptr, nullptr))};
  if (!read.certificate) return openssl_failure("not a certificate in PEM");
  if (!read.key) return openssl_failure("not a private key in PEM without passphrase");
  if (X509_check_private_key(read.certificate.get(), read.key.get()) != 1) {
    ERR_clear_error();
    return fail("the key does not belong to the certificate");
  }
  return read;
}

}  // namespace lethe

#include "runtime/http/http_tls.hpp"

#include <kj/vector.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "runtime/crypto/certificate.hpp"
#include "runtime/http/quiet_kj.hpp"

namespace lethe {
namespace {

constexpr size_t pem_bytes_max = size_t{1} << 20;

result<std::string> read_pem(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail("{}: cannot be read: {}", path.string(), std::strerror(errno));
  std::string text(pem_bytes_max + 1, '\0');
  file.read(text.data(), std::streamsize(text.size()));
  text.resize(size_t(std::max<std::streamsize>(file.gcount(), 0)));
  if (text.size() > pem_bytes_max)
    return fail("{}: more than {} bytes; name a PEM file", path.string(), pem_bytes_max);
  return text;
}

kj::StringPtr view(const std::string& text) { return {text.c_str(), text.size()}; }

/// What KJ throws, as an error in the file.
template <class Make>
result<void> without_throwing(const std::filesystem::path& of, const char* what, Make make) {
  if (!quietly(make))
    return fail("{}: holds no {} in PEM form; lethe keys init makes some", of.string(), what);
  return {};
}

result<kj::Own<kj::TlsKeypair>> read_keypair(const http_identity& from) {
  auto certificate = read_pem(from.certificate);
  if (!certificate) return certificate.why();
  auto key = read_pem(from.key);
  if (!key) return key.why();
  auto good = identity_of(*certificate, *key);  // KJ would only say so to clients
  if (!good)
    return fail("{}, {}: {}; lethe keys init makes some", from.certificate.string(),
                from.key.string(), good.why().text);
  kj::Own<kj::TlsKeypair> pair;
  auto ok = without_throwing(from.certificate, "certificates", [&] {
    pair = kj::heap<kj::TlsKeypair>(
        kj::TlsKeypair{kj::TlsPrivateKey(view(*key)), kj::TlsCertificate(view(*certificate))});
  });
  if (!ok) return ok.why();
  return pair;
}

/// Every certificate of a file: KJ takes one with what follows it for one chain.
result<kj::Vector<kj::TlsCertificate>> read_authorities(const std::filesystem::path& path) {
  constexpr std::string_view end = "-----END CERTIFICATE-----";
  auto text = read_pem(path);
  if (!text) return text.why();
  kj::Vector<kj::TlsCertificate> all;
  for (size_t from = 0, at; (at = text->find(end, from)) != text->npos; from = at + end.size()) {
    auto one = text->substr(from, at + end.size() - from) + "\n";
    auto ok =
        without_throwing(path, "certificate", [&] { all.add(kj::TlsCertificate(view(one))); });
    if (!ok) return ok.why();
  }
  if (all.empty()) return fail("{}: holds no certificate in PEM form", path.string());
  return all;
}

}  // namespace

result<kj::Own<kj::TlsContext>> serving_tls(const http_identity& identity, kj::Timer& timer,
                                            uint32_t handshake_ms) {
  auto pair = read_keypair(identity);
  if (!pair) return pair.why();
  kj::Own<kj::TlsContext> made;
  auto ok = without_throwing(identity.certificate, "certificate for a server", [&] {
    kj::TlsContext::Options options;
    options.useSystemTrustStore = false;
    options.minVersion = kj::TlsVersion::TLS_1_2;
    options.defaultKeypair = **pair;
    options.timer = timer;
    options.acceptTimeout = handshake_ms * kj::MILLISECONDS;
    made = kj::heap<kj::TlsContext>(options);
  });
  if (!ok) return ok.why();
  return made;
}

result<kj::Own<kj::TlsContext>> asking_tls(const http_trust& trust) {
  kj::Vector<kj::TlsCertificate> authorities;
  if (!trust.authorities.empty()) {
    auto read = read_authorities(trust.authorities);
    if (!read) return read.why();
    authorities = *kj::mv(read);
  }
  kj::Own<kj::TlsContext> made;
  auto ok = without_throwing(trust.authorities, "authorities", [&] {
    kj::TlsContext::Options options;
    options.useSystemTrustStore = trust.authorities.empty();
    options.trustedCertificates = authorities;
    options.minVersion = kj::TlsVersion::TLS_1_2;
    made = kj::heap<kj::TlsContext>(options);
  });
  if (!ok) return ok.why();
  return made;
}

}  // namespace lethe

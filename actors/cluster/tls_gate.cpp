// CAF 0.17 asks whether a peer's certificate is signed by our authority, never whose it is. So a
// host that the file names no more would still come in, and any host could pass for the leader.
// This stands before OpenSSL's own function, for the whole program, and adds the question.
#include <dlfcn.h>
#include <openssl/ssl.h>

#include "actors/cluster/tls_peers.hpp"
#include "runtime/base/check.hpp"
#include "runtime/crypto/certificate.hpp"

namespace {

int check_name(int good, X509_STORE_CTX* chain) {
  if (!good || X509_STORE_CTX_get_error_depth(chain) > 0) return good;
  if (lethe::is_peer_allowed(lethe::name_in(X509_STORE_CTX_get_current_cert(chain)))) return 1;
  X509_STORE_CTX_set_error(chain, X509_V_ERR_APPLICATION_VERIFICATION);
  return 0;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void SSL_CTX_set_verify(SSL_CTX* rules, int mode,
                                                                          SSL_verify_cb callback) {
  static auto* next =
      reinterpret_cast<decltype(SSL_CTX_set_verify)*>(::dlsym(RTLD_NEXT, "SSL_CTX_set_verify"));
  lethe::check(next != nullptr);
  bool ours = (mode & SSL_VERIFY_PEER) != 0 && callback == nullptr;
  next(rules, mode, ours ? check_name : callback);
}

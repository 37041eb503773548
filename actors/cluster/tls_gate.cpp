// What CAF 0.17 does not ask of whoever knocks. These stand before OpenSSL's own functions, for the
// whole program.
//
// It asks whether a certificate is signed by our authority, never whose it is: a host that the file
// names no more would still come in, and any host could pass for the leader. And it waits for ever,
// for any number of peers, that they finish their handshake: strangers who say nothing would use up
// the process's descriptors.
#include <dlfcn.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <deque>
#include <mutex>

#include "actors/cluster/tls_peers.hpp"
#include "runtime/base/check.hpp"
#include "runtime/crypto/certificate.hpp"

namespace {

template <class Function>
Function* next_of(const char* name) {
  auto* found = reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
  lethe::check(found != nullptr);
  return found;
}

int check_name(int good, X509_STORE_CTX* chain) {
  if (!good || X509_STORE_CTX_get_error_depth(chain) > 0) return good;
  if (lethe::is_peer_allowed(lethe::name_in(X509_STORE_CTX_get_current_cert(chain)))) return 1;
  X509_STORE_CTX_set_error(chain, X509_V_ERR_APPLICATION_VERIFICATION);
  return 0;
}

/// Those whose handshake has begun and not ended, the oldest first. A real one takes
/// milliseconds; where too many wait, the oldest is hung up on, and CAF cleans up after it.
class waiting_room {
 public:
  void enter(SSL* who) {
    std::lock_guard guard(lock_);
    if (std::ranges::find(waiting_, who) != waiting_.end()) return;
    waiting_.push_back(who);
    if (waiting_.size() <= lethe::tls_handshakes_max) return;
    ::shutdown(SSL_get_fd(waiting_.front()), SHUT_RDWR);
    waiting_.pop_front();
  }
  void leave(SSL* who) {
    std::lock_guard guard(lock_);
    std::erase(waiting_, who);
  }

 private:
  std::mutex lock_;
  std::deque<SSL*> waiting_;
};

/// Never destroyed: threads may still free connections while the program ends.
waiting_room& door() {
  static auto* room = new waiting_room;
  return *room;
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) void SSL_CTX_set_verify(SSL_CTX* rules, int mode,
                                                               SSL_verify_cb callback) {
  static auto* next = next_of<decltype(SSL_CTX_set_verify)>("SSL_CTX_set_verify");
  bool ours = (mode & SSL_VERIFY_PEER) != 0 && callback == nullptr;
  next(rules, mode, ours ? check_name : callback);
}

__attribute__((visibility("default"))) int SSL_accept(SSL* ssl) {
  static auto* next = next_of<decltype(SSL_accept)>("SSL_accept");
  ERR_clear_error();  // tls_errors.cpp says why
  int done = next(ssl);
  int why = done == 1 ? SSL_ERROR_NONE : SSL_get_error(ssl, done);
  if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE)
    door().enter(ssl);
  else
    door().leave(ssl);
  return done;
}

__attribute__((visibility("default"))) void SSL_free(SSL* ssl) {
  static auto* next = next_of<decltype(SSL_free)>("SSL_free");
  door().leave(ssl);
  next(ssl);
}
}

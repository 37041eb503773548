// OpenSSL keeps errors in a queue of the thread, and SSL_get_error takes whatever lies there for
// the fault of the connection in hand. CAF 0.17 serves all connections on one thread and never
// empties the queue: when one peer dies, the next connection that only has to wait is cut, too.
// These stand before OpenSSL's own functions, for the whole program, and empty it first. So does
// SSL_accept in tls_gate.cpp.
#include <dlfcn.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "runtime/base/check.hpp"

namespace {

template <class Function>
Function* next_of(const char* name) {
  auto* found = reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
  lethe::check(found != nullptr);
  return found;
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) int SSL_read(SSL* ssl, void* to, int bytes) {
  static auto* next = next_of<decltype(SSL_read)>("SSL_read");
  ERR_clear_error();
  return next(ssl, to, bytes);
}

__attribute__((visibility("default"))) int SSL_write(SSL* ssl, const void* from, int bytes) {
  static auto* next = next_of<decltype(SSL_write)>("SSL_write");
  ERR_clear_error();
  return next(ssl, from, bytes);
}

__attribute__((visibility("default"))) int SSL_connect(SSL* ssl) {
  static auto* next = next_of<decltype(SSL_connect)>("SSL_connect");
  ERR_clear_error();
  return next(ssl);
}
}

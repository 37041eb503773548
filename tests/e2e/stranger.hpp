#pragma once

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "tests/e2e/cluster.hpp"

// Someone who reaches a host's port, and what it says to them.
namespace lethe {

inline int connect_to(const std::string& address, uint16_t port) {
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  timeval patience{.tv_sec = 2, .tv_usec = 0};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  sockaddr_in at{.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {}, .sin_zero = {}};
  ::inet_pton(AF_INET, address.c_str(), &at.sin_addr);
  if (::connect(fd, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0) return fd;
  ::close(fd);
  return -1;
}

/// What was said before the other side hung up, or for two seconds.
struct heard {
  bool reached = false, hung_up = false;
  std::string bytes;  // inside TLS, where that was spoken
};

inline heard say_plainly(const std::string& address, uint16_t port, const std::string& words) {
  heard h;
  int fd = connect_to(address, port);
  if (fd < 0) return h;
  h.reached = ::send(fd, words.data(), words.size(), MSG_NOSIGNAL) == ssize_t(words.size());
  char part[4096];
  ssize_t n;
  while ((n = ::recv(fd, part, sizeof part, 0)) > 0) h.bytes.append(part, size_t(n));
  h.hung_up = n == 0 || errno == ECONNRESET;
  ::close(fd);
  return h;
}

/// With the certificate FOLDER/NAME.crt; none if `name` is empty. Trusts anybody.
inline heard say_in_tls(const std::string& address, uint16_t port, const std::string& folder,
                        const std::string& name) {
  heard h;
  int fd = connect_to(address, port);
  if (fd < 0) return h;
  h.reached = true;
  SSL_CTX* rules = SSL_CTX_new(TLS_client_method());
  std::string at = folder + "/" + name;
  bool good = name.empty() ||
              (SSL_CTX_use_certificate_chain_file(rules, (at + ".crt").c_str()) == 1 &&
               SSL_CTX_use_PrivateKey_file(rules, (at + ".key").c_str(), SSL_FILETYPE_PEM) == 1);
  SSL* ssl = SSL_new(rules);
  SSL_set_fd(ssl, fd);
  if (good && SSL_connect(ssl) == 1) {
    char part[4096];
    int n = SSL_read(ssl, part, sizeof part);
    if (n > 0) h.bytes.assign(part, size_t(n));
    h.hung_up = n <= 0 && errno != EAGAIN;
  } else {
    h.reached = good;
    h.hung_up = true;
  }
  ERR_clear_error();
  SSL_free(ssl);
  SSL_CTX_free(rules);
  ::close(fd);
  return h;
}

}  // namespace lethe

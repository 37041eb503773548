#include "actors/cluster/rank_line.hpp"

#include <netdb.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <cstring>

#include "actors/cluster/node.hpp"
#include "parallel/link_address.hpp"
#include "runtime/crypto/certificate.hpp"

namespace lethe {

namespace {

constexpr int greeting_s = 5;
// A host that vanished is noticed by who only listens, too.
constexpr std::chrono::seconds patience_when_idle{15};

struct end_of_list {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using addresses = std::unique_ptr<addrinfo, end_of_list>;

result<addresses> looked_up(const std::string& name, uint16_t port) {
  addrinfo hints{.ai_flags = AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
  addrinfo* found = nullptr;
  if (::getaddrinfo(name.c_str(), std::to_string(port).c_str(), &hints, &found) != 0)
    return fail("ranks: there is no address {}; see [[hosts]] address", name);
  return addresses(found);
}

void set_patience(int fd, int seconds) {
  const timeval t{.tv_sec = seconds};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t);
}

std::string tls_reason() {
  const char* reason = ::ERR_reason_error_string(::ERR_peek_last_error());
  return reason ? reason : "it hung up, or said nothing";
}

}  // namespace

result<std::string> numeric_address(const std::string& name) {
  auto found = looked_up(name, 0);
  if (!found) return found.why();
  char text[NI_MAXHOST];
  if (::getnameinfo((*found)->ai_addr, (*found)->ai_addrlen, text, sizeof text, nullptr, 0,
                    NI_NUMERICHOST) != 0)
    return fail("ranks: {} has no numeric address", name);
  return std::string(text);
}

result<rank_keys> rank_keys::of(const node_tls& tls) {
  std::shared_ptr<SSL_CTX> made(::SSL_CTX_new(::TLS_method()), ::SSL_CTX_free);
  ::ERR_clear_error();
  const bool good =
      ::SSL_CTX_set_min_proto_version(made.get(), TLS1_3_VERSION) == 1 &&
      ::SSL_CTX_set_num_tickets(made.get(), 0) == 1 &&
      // A secret goes through; what is freed is wiped.
      (::SSL_CTX_set_mode(made.get(), SSL_MODE_RELEASE_BUFFERS) & SSL_MODE_RELEASE_BUFFERS) != 0 &&
      ::SSL_CTX_use_certificate_chain_file(made.get(), tls.certificate.c_str()) == 1 &&
      ::SSL_CTX_use_PrivateKey_file(made.get(), tls.key.c_str(), SSL_FILETYPE_PEM) == 1 &&
      ::SSL_CTX_load_verify_locations(made.get(), tls.authority.c_str(), nullptr) == 1;
  if (!good)
    return fail("tls: {}, {} or {} cannot be used: {}; `lethe keys init` makes them",
                tls.certificate.string(), tls.key.string(), tls.authority.string(), tls_reason());
  return rank_keys(std::move(made));
}

void rank_line::end_of_tls::operator()(ssl_st* tls) const { ::SSL_free(tls); }

result<rank_line> rank_line::greet(owned_fd fd, const rank_keys& keys, bool calls) {
  rank_line line;
  line.fd_ = std::move(fd);
  set_patience(line.fd_.get(), greeting_s);
  keep_alive(line.fd_.get(), patience_when_idle);
  line.tls_.reset(::SSL_new(keys.get()));
  SSL* tls = line.tls_.get();
  // Of this connection alone: the program's rules for all others name whom CAF may talk to.
  ::SSL_set_verify(tls, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  ::SSL_set_fd(tls, line.fd_.get());
  calls ? ::SSL_set_connect_state(tls) : ::SSL_set_accept_state(tls);
  ::ERR_clear_error();
  if (::SSL_do_handshake(tls) != 1) return fail("{}", tls_reason());
  openssl::certificate shown(::SSL_get1_peer_certificate(tls));
  if (!shown) return fail("it showed no certificate");
  line.host_ = name_in(shown.get());
  return line;
}

result<rank_line> rank_line::call(const std::string& address, uint16_t port,
                                  const std::string& host, const rank_keys& keys) {
  auto found = looked_up(address, port);
  if (!found) return found.why();
  const addrinfo& at = **found;
  owned_fd fd(::socket(at.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  set_patience(fd.get(), greeting_s);
  if (::connect(fd.get(), at.ai_addr, at.ai_addrlen) != 0)
    return fail("ranks: the engine's process at {}:{} cannot be reached: {}", address, port,
                std::strerror(errno == EINPROGRESS ? ETIMEDOUT : errno));
  auto line = greet(std::move(fd), keys, true);
  if (!line)
    return fail("ranks: the engine's process at {}:{}: {}", address, port, line.why().text);
  if (line->host() != host)
    return fail("ranks: at {}:{} is host {}, not {}; see that every host has its own certificate",
                address, port, line->host(), host);
  return line;
}

void rank_line::wait_for_ever() { set_patience(fd_.get(), 0); }

bool rank_line::send(bytes_view bytes) {
  size_t sent = 0;
  return bytes.empty() || ::SSL_write_ex(tls_.get(), bytes.data(), bytes.size(), &sent) == 1;
}

bool rank_line::receive(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    size_t got = 0;
    if (::SSL_read_ex(tls_.get(), bytes.data(), bytes.size(), &got) != 1) return false;
    bytes = bytes.subspan(got);
  }
  return true;
}

}  // namespace lethe

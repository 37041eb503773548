#include "actors/cluster/node.hpp"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <caf/io/all.hpp>
#include <caf/openssl/all.hpp>

#include "runtime/base/mapped_file.hpp"
#include "runtime/crypto/certificate.hpp"

namespace lethe {

namespace {

constexpr size_t pem_bytes_max = size_t{1} << 20;
constexpr std::chrono::hours for_ever{24 * 365 * 100};

/// CAF would find out in a thread of its own, and go on without a network.
result<void> check_keys(const node_tls& tls) {
  std::string texts[3];
  const std::filesystem::path* files[] = {&tls.certificate, &tls.key, &tls.authority};
  for (int i = 0; i < 3; ++i) {
    auto text = read_text(*files[i], pem_bytes_max);
    if (!text) return fail("{}; `lethe keys init` makes it", text.why().text);
    texts[i] = *std::move(text);
  }
  auto own = identity_of(texts[0], texts[1]);
  if (!own) return fail("{}: {}", tls.certificate.string(), own.why().text);
  auto name = name_in(own->certificate.get());
  if (!tls.host.empty() && name != tls.host)
    return fail("{}: is the certificate of {}, this is host {}; nobody would let it in",
                tls.certificate.string(), name, tls.host);
  return {};
}

/// None: somebody listens there.
schema::Fault why_unreachable(const std::string& address, uint16_t port) {
  addrinfo hints{.ai_flags = AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
  addrinfo* found = nullptr;
  if (::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found) != 0)
    return schema::Fault::ADDRESS_UNKNOWN;
  int fd = ::socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  ::connect(fd, found->ai_addr, found->ai_addrlen);
  ::freeaddrinfo(found);
  pollfd p{.fd = fd, .events = POLLOUT, .revents = 0};
  int failed = 0;
  socklen_t size = sizeof failed;
  bool good = ::poll(&p, 1, 1000) == 1 &&
              ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &size) == 0 && failed == 0;
  ::close(fd);
  return good ? schema::Fault::NONE : schema::Fault::NOT_REACHED;
}

}  // namespace

result<std::unique_ptr<node_config>> node_config::make(const node_options& o) {
  std::unique_ptr<node_config> c(new node_config);
  c->add_message_types<caf::id_block::lethe_messages>();
  // The other policy polls, and sleeps up to ten milliseconds before it looks again.
  c->set("scheduler.policy", caf::atom("sharing"));
  c->set("scheduler.max-threads", size_t{o.threads});
  c->set("middleman.heartbeat-interval", caf::timespan{std::chrono::milliseconds(o.heartbeat_ms)});
  // CAF takes a connection that it makes itself for lost when it has heard nothing by the next
  // heartbeat, however young it is, and leaves its thread busy with it.
  caf::timespan lost_after = for_ever;
  if (o.lost_after_ms) lost_after = std::chrono::milliseconds(*o.lost_after_ms);
  c->set("middleman.connection-timeout", lost_after);
  if (!o.tls) return c;
  if (auto ok = check_keys(*o.tls); !ok) return ok.why();
  c->openssl_certificate = o.tls->certificate.string();
  c->openssl_key = o.tls->key.string();
  c->openssl_cafile = o.tls->authority.string();
  c->load<caf::io::middleman>();
  c->load<caf::openssl::manager>();
  return c;
}

result<uint16_t> publish(caf::actor_system& sys, const directory_actor& who,
                         const std::string& address, uint16_t port) {
  if (!sys.openssl_manager().authentication_enabled())
    return fail("tls: peers would not be verified; nothing is published");
  auto bound = caf::openssl::publish(who, port, address.c_str(), true);
  if (!bound)
    return fail("{}:{}: cannot listen there: {}; is another cluster using it?", address, port,
                sys.render(bound.error()));
  return *bound;
}

found_directory connect(caf::actor_system& sys, const std::string& address, uint16_t port) {
  if (!sys.openssl_manager().authentication_enabled()) return {.fault = schema::Fault::UNVERIFIED};
  // CAF's own connect waits for minutes where packets are dropped.
  if (auto why = why_unreachable(address, port); why != schema::Fault::NONE) return {.fault = why};
  auto found = caf::openssl::remote_actor<directory_actor>(sys, address, port);
  if (!found) return {.fault = schema::Fault::HUNG_UP};
  return {.who = *found};
}

}  // namespace lethe

#include "actors/cluster/node.hpp"

#include <caf/io/all.hpp>
#include <caf/openssl/all.hpp>

namespace lethe {

namespace {

result<void> check_readable(const std::filesystem::path& file) {
  if (::access(file.c_str(), R_OK) == 0) return {};
  return fail(
      "{}: cannot be read; without it any peer would be trusted. `lethe keys init` makes it",
      file.string());
}

}  // namespace

result<std::unique_ptr<node_config>> node_config::make(const node_options& o) {
  std::unique_ptr<node_config> c(new node_config);
  c->add_message_types<caf::id_block::lethe_messages>();
  // The other policy polls, and sleeps up to ten milliseconds before it looks again.
  c->set("scheduler.policy", caf::atom("sharing"));
  c->set("scheduler.max-threads", size_t{o.threads});
  c->set("middleman.heartbeat-interval", caf::timespan{std::chrono::milliseconds(o.heartbeat_ms)});
  c->set("middleman.connection-timeout", caf::timespan{std::chrono::milliseconds(o.lost_after_ms)});
  if (!o.tls) return c;
  for (const auto& file : {o.tls->certificate, o.tls->key, o.tls->authority})
    if (auto ok = check_readable(file); !ok) return ok.why();
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

result<directory_actor> connect(caf::actor_system& sys, const std::string& address, uint16_t port) {
  if (!sys.openssl_manager().authentication_enabled())
    return fail("tls: the peer would not be verified; no connection is made");
  auto found = caf::openssl::remote_actor<directory_actor>(sys, address, port);
  if (!found) return fail("{}:{}: {}", address, port, sys.render(found.error()));
  return *found;
}

}  // namespace lethe

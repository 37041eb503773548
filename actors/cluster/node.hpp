#pragma once

#include <filesystem>

#include "actors/cluster/messages.hpp"
#include "runtime/base/result.hpp"
#include "schemas/telemetry.capnp.h"

namespace lethe {

/// Files of this host's certificate; all three, or no network at all.
struct node_tls {
  std::filesystem::path certificate, key, authority;
  std::string host;  // whom the certificate must name; empty: whoever started us has looked
};

struct node_options {
  std::optional<node_tls> tls;  // none: this process talks to no other
  uint32_t heartbeat_ms = 200;
  std::optional<uint32_t> lost_after_ms;  // of silence; none: someone else watches
  uint32_t threads = 2;
};

/// CAF's configuration of one of our processes.
class node_config : public caf::actor_system_config {
 public:
  /// Refuses what CAF would silently make an unverified connection of.
  static result<std::unique_ptr<node_config>> make(const node_options& options);

 private:
  node_config() = default;
};

/// Publishes over mutual TLS. Port 0: any; returns the real one.
result<uint16_t> publish(caf::actor_system& sys, const directory_actor& who,
                         const std::string& address, uint16_t port);
/// What came of looking for the leader.
struct found_directory {
  directory_actor who;
  schema::Fault fault = schema::Fault::NONE;
};
found_directory connect(caf::actor_system& sys, const std::string& address, uint16_t port);

}  // namespace lethe

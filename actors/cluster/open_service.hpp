#pragma once

#include "actors/cluster/service.hpp"
#include "runtime/config/check_config.hpp"

namespace lethe {

/// What a listener of the file shows; nothing where it names no certificate.
std::optional<http_identity> identity_at(const cluster_config& config,
                                         capnp::Text::Reader certificate, capnp::Text::Reader key);
/// Whom a client of the file believes.
http_trust trust_at(const cluster_config& config, capnp::Text::Reader authorities);

/// The issuer, relay or witness of a file that was checked, and serves.
result<std::shared_ptr<service>> open_service(const checked_config& config);

}  // namespace lethe

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lethe {

/// Handshakes that may be under way at once; the oldest gives way.
constexpr size_t tls_handshakes_max = 64;

/// Whose certificates this process accepts from now on, besides that its authority signed them: a
/// leader those of its hosts, everyone else the leader's. For the whole process, since CAF has no
/// place for it (tls_gate.cpp).
void allow_peers(std::vector<std::string> names);
bool is_peer_allowed(std::string_view name);

}  // namespace lethe

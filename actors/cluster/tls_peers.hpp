#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lethe {

/// Whose certificates this process accepts from now on, besides that its authority signed them: a
/// leader those of its hosts, everyone else the leader's. For the whole process, since CAF has no
/// place for it (tls_gate.cpp).
void allow_peers(std::vector<std::string> names);
bool is_peer_allowed(std::string_view name);

}  // namespace lethe

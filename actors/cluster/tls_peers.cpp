#include "actors/cluster/tls_peers.hpp"

#include <algorithm>
#include <mutex>

namespace lethe {

namespace {

std::mutex lock;
std::vector<std::string> allowed;

}  // namespace

void allow_peers(std::vector<std::string> names) {
  std::lock_guard guard(lock);
  allowed = std::move(names);
}

bool is_peer_allowed(std::string_view name) {
  std::lock_guard guard(lock);
  return std::ranges::find(allowed, name) != allowed.end();
}

}  // namespace lethe

#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/base/result.hpp"

namespace lethe {

/// Who gets a certificate: the name that the cluster file gives a host, and where it is reached.
struct named_host {
  std::string name, address;
};

/// What `make_cluster_keys` wrote and what it found.
struct key_report {
  std::vector<std::filesystem::path> written, kept;
};

/// Makes what is missing in `folder`: the authority (ca.crt, ca.key) and for each host HOST.crt and
/// HOST.key, P-256, valid for `days`. What is there is never written over; whoever the authority
/// signed is in the cluster, so ca.key belongs nowhere but where hosts are added.
result<key_report> make_cluster_keys(const std::filesystem::path& folder,
                                     const std::string& cluster,
                                     const std::vector<named_host>& hosts, uint32_t days);

}  // namespace lethe

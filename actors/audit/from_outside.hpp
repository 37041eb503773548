#pragma once

#include <functional>
#include <vector>

#include "runtime/audit/finding.hpp"
#include "runtime/client/trust_file.hpp"

namespace lethe::audit {

/// What any client can check of a running cluster, and whether the same client refuses where
/// something is off. Spends nothing; needs no account.
result<std::vector<finding>> measure_from_outside(
    const trust_file& trust, const std::function<void(const std::string&)>& progress);

}  // namespace lethe::audit

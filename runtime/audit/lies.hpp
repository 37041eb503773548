#pragma once

#include "runtime/audit/finding.hpp"
#include "runtime/base/result.hpp"

/// What gateway, directory, scheduler and their log can tell one client and not the others.
namespace lethe::audit {

struct told_lie {
  std::string lie;
  std::string said;  // by the client
  bool refused = false;
};
/// Each to a client of its own.
result<std::vector<told_lie>> tell_lies();

/// Every lie is refused by the shipped client; those that only delay are in measure_steering.
/// Controls: the same lies where the bound that refuses them is off.
finding measure_lies();

}  // namespace lethe::audit

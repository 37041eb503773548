#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "actors/cluster/messages.hpp"
#include "runtime/base/result.hpp"
#include "runtime/telemetry/telemetry.hpp"

namespace lethe {

/// Where a client may come in.
struct bound_listener {
  std::string role, url;
};

/// What `lethe up` stays with, from start to end: a host's part of a cluster, or a service.
class running_part {
 public:
  virtual ~running_part() = default;

  virtual const std::vector<bound_listener>& listeners() const = 0;
  /// What the operator's commands get, too.
  virtual result<wire<schema::ControlAnswer>> ask(const wire<schema::ControlAsk>& what,
                                                  std::chrono::seconds patience) = 0;
  virtual result<void> leave(schema::Down how) = 0;
  /// Everything has left.
  virtual bool ended() const = 0;
  /// Ends everything here but the operator's socket. That goes with this object, and `lethe down`
  /// returns.
  virtual void end() = 0;
  virtual bool leads() const { return true; }
  virtual std::optional<telemetry_event> standing() const { return {}; }
  /// Why it can't go on.
  virtual std::optional<telemetry_event> broken() const { return {}; }
};

}  // namespace lethe

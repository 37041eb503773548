#pragma once

#include <optional>
#include <string>

#include "runtime/cluster/fleet.hpp"
#include "schemas/config.capnp.h"

namespace lethe {

/// [scaling] of a cluster file.
struct scaling_rules {
  uint16_t least = 1, most = 0;  // engines; most 0: not by load
  uint32_t queued = 8, queued_low = 0;
  uint32_t pages = 80, pages_low = 40;  // percent
  uint32_t hold_ms = 10'000, idle_ms = 60'000;

  static scaling_rules of(schema::Config::Reader c);
  bool by_load() const { return most > 0; }
  uint16_t bound(uint16_t engines) const;
};

/// What the engines that are wanted have to do, together.
struct cluster_load {
  uint16_t engines = 0;  // ready, and said how full they are
  uint16_t leaving = 0;  // engines that are wanted no more and still there
  uint64_t queued = 0;   // requests that wait in them
  uint64_t pages = 0, reserved = 0;
};

/// How many engines a load asks for. Pure: what is seen goes in, with its time.
///
/// One more when too much has waited at every look for `hold_ms`; one fewer when what there is
/// would have been little for the others, too, for `idle_ms`. What comes and goes faster changes
/// nothing.
class load_scaling {
 public:
  explicit load_scaling(const scaling_rules& rules) : rules_(rules) {}

  const scaling_rules& rules() const { return rules_; }
  /// From now on; what was seen before counts no more.
  void change(const scaling_rules& rules);

  /// How many should serve, where `wanted` did.
  uint16_t look(const cluster_load& load, uint16_t wanted, fleet_time now);

  /// For people.
  const std::string& now_text() const { return now_; }
  std::string changed_text(fleet_time now) const;

 private:
  bool asks_more(const cluster_load& load) const;
  bool asks_fewer(const cluster_load& load) const;
  uint16_t decide(uint16_t wanted, uint16_t next, const std::string& seen, fleet_time now);

  scaling_rules rules_;
  std::optional<fleet_time> more_since_, fewer_since_;
  std::string now_ = "nothing was seen yet", changed_;
  fleet_time changed_at_ = 0;
};

}  // namespace lethe

#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "schemas/messages.capnp.h"

namespace lethe {

/// Milliseconds on the directory's clock.
using fleet_time = uint64_t;

struct fleet_rules {
  uint32_t restart_ms = 100, restart_max_ms = 10'000;
  uint32_t restarts = 5;                // failures within `memory_ms`, then parked
  uint32_t memory_ms = 10 * 60 * 1000;  // of failures
  uint32_t drain_ms = 30'000;
  uint32_t start_ms = 600'000;  // from order to ready
  uint32_t together_ms = 1000;  // what fails so long before its host is lost went with it
};

/// Where an engine should run, and by which version of the cluster file.
struct engine_place {
  std::string host;  // of its first rank, which leads
  uint32_t version = 0;
  std::vector<std::string> ranks = {};    // the host of each, if they lie on several
  std::vector<std::string> devices = {};  // of each rank; none: on cores
  schema::Arithmetic arithmetic = schema::Arithmetic::EXACT;

  /// Each once, the leading one first.
  std::vector<std::string> hosts() const;
  bool touches(const std::string& host) const;
  /// Whether both need the same device, which holds one rank.
  bool collides(const engine_place& other) const;

  friend bool operator==(const engine_place&, const engine_place&) = default;
};

/// One engine as far as the directory knows. Its id is never given again; each start of it has an
/// epoch of its own, so that what an earlier one still says is told apart.
struct engine_instance {
  uint16_t id = 0;
  engine_place place;
  schema::Phase phase = schema::Phase::WAITING;
  uint32_t epoch = 0;
  bool surplus = false;             // nothing wants it any more
  bool patient = false;             // surplus: what it runs may take as long as it takes
  fleet_time since = 0;             // of the phase
  fleet_time retry_at = 0;          // waiting: not before
  std::deque<fleet_time> failures;  // the recent ones
  uint32_t restarts = 0;            // all
  std::string reason;               // of the last failure

  /// A process or actor of it may exist.
  bool alive() const {
    return phase == schema::Phase::STARTING || phase == schema::Phase::LOADING ||
           phase == schema::Phase::READY || phase == schema::Phase::DRAINING;
  }
};

/// What the directory is to tell a host or an engine.
struct fleet_order {
  enum class what : uint8_t { start, drain, kill } kind{};
  uint16_t id = 0;
  uint32_t epoch = 0;
  std::string host;

  friend bool operator==(const fleet_order&, const fleet_order&) = default;
};

/// Brings what runs to what should run. Pure: events go in, orders come out, time is an argument.
///
/// A surplus engine leaves only when every place has one that is ready, so that a changed file
/// never takes away what serves before its successor does. But a device holds one engine's rank:
/// whose successor needs its device leaves first, one at a time, while all that follow came up.
class fleet {
 public:
  explicit fleet(const fleet_rules& rules) : rules_(rules) {}

  /// How long those have that become surplus: `drain_ms` where someone asks for it, all the time
  /// they need where the load does.
  enum class haste : uint8_t { drain_ms, none };
  /// Replaces what is wanted. Engines that stand where one is wanted stay; of those, a parked one
  /// is tried anew if someone asks, as if it had never failed: someone has looked.
  void want(std::vector<engine_place> places, fleet_time now, haste of_surplus = haste::drain_ms);
  /// One place less, and it is this engine that goes. False: there is no such engine.
  bool retire(uint16_t id, fleet_time now);
  /// Nothing is wanted, and nothing will be started again.
  void leave(fleet_time now);

  void host_joined(const std::string& host);
  void host_lost(const std::string& host, fleet_time now,
                 const std::string& why = "its host was lost");
  /// It asks to go. Its engines drain, though they are wanted, and wait for it to come back.
  void host_leaves(const std::string& host);
  /// Nothing of ours runs there.
  bool is_idle(const std::string& host) const;
  /// What an engine says of itself; false: it is not the one we know.
  bool engine_said(uint16_t id, uint32_t epoch, schema::Phase phase, fleet_time now);
  /// Its process or actor is gone; false: it is not the one we know.
  bool engine_ended(uint16_t id, uint32_t epoch, const std::string& reason, fleet_time now);

  /// What to do now. Each order is given once.
  std::vector<fleet_order> due(fleet_time now);

  const std::map<uint16_t, engine_instance>& engines() const { return engines_; }
  const std::vector<engine_place>& wanted() const { return wanted_; }
  bool leaving() const { return leaving_; }
  /// Every place has an engine that is ready, and there are no others.
  bool settled() const;

 private:
  void assign(fleet_time now, haste of_surplus);
  bool every_place_ready() const;
  bool is_kept_out(const engine_instance& e) const;
  bool keeps_out_a_wanted(const engine_instance& e) const;
  bool is_calm() const;
  void fail(engine_instance& e, const std::string& reason, fleet_time now);
  void enter(engine_instance& e, schema::Phase phase, fleet_time now);

  enum class presence : uint8_t { absent, joined, leaving };
  presence presence_of(const engine_place& place) const;

  fleet_rules rules_;
  std::vector<engine_place> wanted_;
  std::map<uint16_t, engine_instance> engines_;
  std::map<std::string, presence> hosts_;
  std::vector<fleet_order> ends_;  // of what lost engines have left on their other hosts
  uint16_t next_id_ = 0;
  bool leaving_ = false;
};

}  // namespace lethe

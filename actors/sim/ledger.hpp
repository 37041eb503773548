#pragma once

#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "actors/sim/dice.hpp"
#include "runtime/arena/arena.hpp"
#include "runtime/crypto/answer_shape.hpp"
#include "runtime/serve/served_model.hpp"

namespace lethe::sim {

/// Mistakes that a run can be told to make, to see that the checkers find them.
enum class bug : uint8_t {
  none,
  page_freed_early,
  lost_completion,
  arena_outlives_request,
  stale_epoch,
  stuck_drain,
  load_unseen,
  load_forever,
  killed_draining
};
inline constexpr std::array bug_names{
    "none",        "page_freed_early", "lost_completion", "arena_outlives_request", "stale_epoch",
    "stuck_drain", "load_unseen",      "load_forever",    "killed_draining"};

/// What is done to a cluster.
enum class fault : uint8_t {
  engine_killed,
  host_killed,
  link_slow,
  host_cut_off,
  start_refused,
  open_failed,
  open_threw,
  ranks_lost,
  engine_slow,
  engine_threw,
  request_threw,
  supervisor_threw
};
inline constexpr std::array fault_names{"engine killed", "host killed",   "link held up",
                                        "host cut off",  "start refused", "open failed",
                                        "open threw",    "ranks lost",    "engine slowed",
                                        "engine threw",  "request threw", "supervisor threw"};

/// How a client's request ended.
enum class ending : uint8_t { served, refused, turned_away, lost, failed, cancelled };
inline constexpr std::array ending_names{"served", "refused", "turned away",
                                         "lost",   "failed",  "cancelled"};

class sim_core;

/// What a run knows beside its actors.
struct ledger {
  ledger(uint64_t seed, bug with, std::shared_ptr<const served_model> m, uint64_t stops)
      : chance(seed), planted(with), model(std::move(m)), stop_once_in(stops) {}

  dice chance;
  bug planted;
  std::shared_ptr<const served_model> model;
  uint64_t stop_once_in;  // tokens; 0: never
  answer_shape shape;     // of all answers

  /// The first thing that was not as it must be; the run ends with it.
  std::string violation;
  template <class... Args>
  void violated(fmt::format_string<Args...> format, Args&&... args) {
    if (violation.empty()) violation = fmt::format(format, std::forward<Args>(args)...);
  }

  std::array<uint32_t, fault_names.size()> faults{};
  std::array<uint32_t, ending_names.size()> endings{};
  void happened(fault f) { ++faults[size_t(f)]; }
  void ended(ending e) { ++endings[size_t(e)]; }

  std::set<sim_core*> cores;     // of engines that are open
  std::vector<arena> keepsakes;  // bug::arena_outlives_request
  std::set<std::string> cut;     // hosts that nothing comes from, nor goes to
  bool stormy = false;           // faults may happen
  bool unwinding = false;        // an actor dies with what it holds
  /// The next actor of that name that asks the time gets an exception.
  std::string throw_in;
};

}  // namespace lethe::sim

#pragma once

#include <caf/all.hpp>
#include <deque>
#include <map>

#include "runtime/trace/schedule.hpp"

namespace lethe::sim {

/// Whose message is next if messages come at their recorded times, and to each actor in the
/// recorded order. Where one does not come, all that was recorded later waits for it for
/// `patience_ns`, and the rest of the schedule is put off by as much.
class message_turns {
 public:
  static constexpr uint64_t patience_ns = 20'000'000;
  using jobs = std::deque<caf::resumable*>;

  explicit message_turns(const replay_schedule& schedule);
  void begin(uint64_t now_ns) { begin_ns_ = now_ns; }
  /// When something recorded is due.
  uint64_t due_ns(int64_t at_ns) const { return begin_ns_ + uint64_t(std::max<int64_t>(0, at_ns)); }

  struct turn {
    uint64_t due_ns = UINT64_MAX;  // nothing waits
    size_t place = SIZE_MAX;       // in the schedule; SIZE_MAX: not in it
    size_t job = 0;
    size_t element = 0;  // of its mailbox; SIZE_MAX: whatever it takes by itself
  };
  /// The earliest; those that are in no schedule at once.
  turn choose(jobs& all, uint64_t now_ns);
  /// Makes it the first message of the first job, and counts it.
  void take(jobs& all, const turn& which);

 private:
  using actor = std::tuple<actor_kind, uint16_t>;
  turn of_job(caf::scheduled_actor& who) const;
  turn earliest(jobs& all) const;
  bool misses_one(size_t place) const;

  const replay_schedule& schedule_;
  uint64_t begin_ns_ = UINT64_MAX / 2;
  std::optional<uint64_t> waits_since_ns_;
  std::map<taken_message, size_t> places_;
  std::vector<size_t> position_;             // of each message among its actor's
  std::map<actor, size_t> reached_;          // positions before it are over
  std::map<taken_message, uint32_t> taken_;  // of each kind, by number 0
};

}  // namespace lethe::sim

#pragma once

#include <optional>
#include <span>

#include "runtime/trace/clocks.hpp"

namespace lethe {

/// An index that is none.
inline constexpr uint32_t nowhere = UINT32_MAX;

/// A message taken in hand, in the directory's time.
struct traced_event {
  uint64_t trace = 0, lamport = 0, type = 0;
  uint32_t bytes = 0;
  actor_tag sender, receiver;
  uint32_t process = 0;               // where it was taken
  uint32_t sender_process = nowhere;  // where it was sent, if that process was heard
  int64_t at_ns = 0, handled_ns = 0;
  int64_t sent_raw_ns = 0;         // on the sender's own clock
  std::optional<int64_t> sent_ns;  // aligned; nothing where the sender's clock is not known

  // What follows is concluded, not recorded.
  uint32_t via = nowhere;           // the event whose actor passed the same message on
  uint32_t from_process = nowhere;  // of its sender, or of who passed it on
  uint32_t cause = nowhere;         // what the sender took before it sent this
  bool within = false;              // it was sent while `cause` was being handled
  std::optional<int64_t> left_ns;   // when it was sent or, passed on, when that actor was done
  std::optional<int64_t> waited_ns;

  bool crosses() const { return from_process != process; }
  int64_t end_ns() const { return at_ns + handled_ns; }
};

struct traced_request {
  uint64_t id = 0;
  std::vector<uint32_t> events;  // no effect before its cause, otherwise by time
  int64_t begin_ns = 0, end_ns = 0;
  std::vector<uint32_t> processes;
  bool submitted = false, released = false;
  bool lost = false;  // its engine was, and the client was told

  uint64_t error_ns = 0;        // of the clocks of its hosts; 0: it stayed on one
  uint32_t contradictions = 0;  // effects that were taken before their causes, says the clock
  int64_t worst_ns = 0;         // by so much
  uint32_t causeless = 0;       // messages whose sender's own record is missing

  bool contradicts_beyond_error() const { return worst_ns > int64_t(error_ns); }
  int64_t total_ns() const { return end_ns - begin_ns; }
};

/// What is known to be missing.
struct trace_gaps {
  struct loss {
    uint32_t process;
    uint64_t records;
  };
  std::vector<loss> lost;           // overwritten, or cut off
  std::vector<uint32_t> silent;     // processes that did not answer
  std::vector<actor_tag> absent;    // senders of processes that nobody asked: they have ended
  uint64_t causeless = 0;           // messages whose sender's own record is missing
  uint32_t causeless_requests = 0;  // in so many requests
  std::vector<std::string> disagreeing_hosts;

  bool any() const {
    return !lost.empty() || !silent.empty() || !absent.empty() || causeless > 0 ||
           !disagreeing_hosts.empty();
  }
};

/// All records of a cluster, on one clock and with causes.
struct timeline {
  gathered from;  // its records are moved into `events`
  std::vector<aligned_clock> clocks;
  std::vector<traced_event> events;      // by time
  std::vector<traced_request> requests;  // by their beginning
  trace_gaps gaps;
  int64_t now_ns = 0;  // when it was gathered

  bool off() const;  // no process keeps records
  /// The only process of that pid that was asked and did not answer; nowhere: there is none.
  uint32_t silent_process(uint32_t pid) const;
  int64_t unix_of(int64_t at_ns) const { return int64_t(from.unix_ns) - (now_ns - at_ns); }
};

timeline make_timeline(gathered from);

/// By the beginning of its id in hex, or `last`.
result<const traced_request*> find_request(const timeline& t, const std::string& word);

namespace trace_detail {
/// Finds who passed messages on, and what each was sent for.
void find_causes(std::vector<traced_event>& events);
/// Fills a request's events in their order and what follows from it.
void order_request(const timeline& t, std::vector<uint32_t> members, traced_request& into);
}  // namespace trace_detail

}  // namespace lethe

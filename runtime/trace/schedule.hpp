#pragma once

#include <compare>

#include "runtime/trace/timeline.hpp"

namespace lethe {

/// A message of a request, the same in a recording and in its replay: which kind of actor took it,
/// and as the how-manieth of its type.
struct taken_message {
  uint64_t request = 0, type = 0;
  actor_kind taker = actor_kind::none;
  uint32_t number = 0;

  friend auto operator<=>(const taken_message&, const taken_message&) = default;
};

struct scheduled_message {
  taken_message what;
  uint16_t index = 0;  // of the taker, if it is an engine or a request: among `engines`
  int64_t at_ns = 0;   // since the schedule's beginning
};

/// What a client did, as far as numbers tell.
struct scheduled_request {
  uint64_t id = 0;
  int64_t asked_ns = 0;                // since the schedule's beginning
  uint32_t sealed_bytes = 0;           // of the message that carried the request
  uint32_t pieces = 0;                 // of its answer
  int64_t runs_ns = 0;                 // from the engine's hand on it to its release; 0: no release
  std::optional<uint32_t> left_after;  // pieces; the client's leaving
  bool released = false;
};

/// A piece of an answer, or the credit for some.
bool is_piece(uint64_t type);

/// What a recording tells of its requests, to run it again.
struct replay_schedule {
  std::vector<scheduled_request> requests;  // by `asked_ns`
  std::vector<scheduled_message> messages;  // of those requests, by time
  std::vector<uint16_t> engines;            // their numbers in the recording
  bool pieces_recorded = false;             // those of answers, and the credit for them
  uint64_t of_no_request = 0;               // messages about engines, hosts and load

  // Requests that can't be run again:
  uint32_t unplaced = 0;  // turned away, or left before they were sealed
  uint32_t lost = 0;      // their engine died
  uint32_t cut = 0;       // their beginning is not in the records
};

/// Refuses a timeline that holds no request that could be run again.
result<replay_schedule> schedule_of(const timeline& t);

/// The messages of a schedule's requests that a timeline tells of, by time from `begin_ns` on.
/// `engines`: their numbers there, ascending.
std::vector<scheduled_message> messages_of(const timeline& t, const replay_schedule& of,
                                           const std::vector<uint16_t>& engines, int64_t begin_ns);

/// How a replay differed from what was recorded.
struct replay_difference {
  size_t same = 0;                              // messages of both, in the recorded order
  std::vector<scheduled_message> reordered;     // as recorded: their taker took them elsewhere
  std::vector<scheduled_message> not_replayed;  // recorded only
  std::vector<scheduled_message> not_recorded;  // replayed only
  std::vector<uint64_t> elsewhere;              // requests that another engine took
  // Of answers, and credit for them: how many tokens a piece holds is a race in any run.
  size_t pieces_recorded = 0, pieces_replayed = 0;
  size_t late = 0;  // by more than `late_least_ns`
  int64_t latest_ns = 0;

  static constexpr int64_t late_least_ns = 1'000'000;
  bool any() const {
    return !reordered.empty() || !not_replayed.empty() || !not_recorded.empty() ||
           !elsewhere.empty();
  }
};

/// Order is compared for each actor by itself: of two actors on two hosts, no clock says exactly.
replay_difference compare(const replay_schedule& recorded,
                          const std::vector<scheduled_message>& replayed);

/// For people, a line each; the first few of each kind by name.
std::string difference_text(const replay_schedule& recorded, const replay_difference& d);
/// What of the recording was not run again.
std::string left_out_text(const replay_schedule& s);

}  // namespace lethe

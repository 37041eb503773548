#pragma once

#include <poll.h>

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "parallel/link.hpp"
#include "parallel/rank_store.hpp"
#include "parallel/word.hpp"

namespace lethe {

/// A rank's links to all others, and what moves them: whoever waits for something, in its own
/// thread, spinning for a moment and then asleep in poll. What a call leaves to be sent goes out
/// by a thread that otherwise sleeps. One link that ends ends them all.
class mesh {
 public:
  struct config {
    group_terms terms;
    std::chrono::milliseconds timeout{30'000};  // of a call; 0: none
    bool spin = false;
    uint32_t first_rank = 0;           // what texts call rank 0
    std::shared_ptr<group_fate> fate;  // an abort says what ended another group before it
  };
  static result<std::unique_ptr<mesh>> make(config c);
  mesh(const mesh&) = delete;
  ~mesh();

  const group_terms& terms() const { return config_.terms; }
  uint32_t rank() const { return config_.terms.rank; }
  uint32_t size() const { return config_.terms.size; }
  /// After this a silent link counts as cut.
  std::chrono::milliseconds patience() const {
    return config_.timeout.count() != 0 ? config_.timeout : std::chrono::milliseconds(30'000);
  }
  /// While the group forms; afterwards nobody needs the secret.
  void add(uint32_t rank, lane on, link made);
  void formed() { config_.terms.secret.clear(); }
  bool has(uint32_t rank, lane on) const { return bool(slot(rank, on)); }

  /// What is posted on a dead group is forgotten.
  void send(uint32_t to, lane on, uint64_t slot, bytes_view data);
  void receive(uint32_t from, lane on, uint64_t slot, std::span<std::byte> data);
  void acknowledge(uint32_t to);
  void expect_acknowledgement(uint32_t from);

  /// Until all that was posted for that rank is done. An error is the group's end.
  result<void> wait_sent(uint32_t to, lane on, deadline until);
  result<void> wait_received(uint32_t from, lane on, deadline until);
  result<void> wait_acknowledged(uint32_t from, deadline until);
  deadline call_deadline() const;
  /// A call is over: what it has not sent yet is sent without it.
  void leave();

  result<void> alive();
  /// What the others have said so far, without waiting. While a call waits, that call hears it.
  result<void> hear();
  /// Ends the group; the others are told that this rank's calls do not fit theirs.
  error refuse(const char* why);
  /// From any thread.
  void abort();

 private:
  explicit mesh(config c, owned_fd wakes);
  std::optional<link>& slot(uint32_t rank, lane on);
  const std::optional<link>& slot(uint32_t rank, lane on) const {
    return const_cast<mesh*>(this)->slot(rank, on);
  }
  template <class Done>
  result<void> wait(uint32_t rank, deadline until, Done&& done);
  bool progress();
  void sleep(deadline until);
  bool push_all();
  bool unsent() const;
  void look(uint32_t rank, const link& l);
  void end_by(last_word word, std::optional<uint32_t> said_by);
  void end_by(ending why, uint32_t rank) {
    end_by({why, named(rank), uint32_t(config_.timeout.count())}, {});
  }
  void end_aborted();
  uint32_t named(uint32_t rank) const { return config_.first_rank + rank; }
  void push_behind();

  config config_;
  owned_fd wakes_;  // readable once the group was aborted
  std::atomic<bool> aborted_ = false;
  std::mutex mutex_;
  std::vector<std::optional<link>> links_;  // by lane and rank
  std::vector<pollfd> polled_;              // a call's
  std::vector<pollfd> writable_;            // pusher_'s; taken before it starts, which may be late
  std::optional<error> why_;
  word behind_;
  std::thread pusher_;
};

}  // namespace lethe

#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "parallel/communicator.hpp"
#include "parallel/cut.hpp"
#include "parallel/last_word.hpp"
#include "parallel/nccl_environment.hpp"
#include "parallel/nccl_library.hpp"
#include "runtime/base/first_error.hpp"

namespace lethe {

struct nccl_config {
  uint32_t rank = 0;  // of the world, stage-major
  cut ranks;
  std::chrono::milliseconds forming{60'000};  // until all ranks have joined
  /// Of each call, and of what a device was given to do.
  std::chrono::milliseconds timeout{30'000};
  /// How often a rank looks whether NCCL failed, and whether another rank did.
  std::chrono::milliseconds beat{10};
  /// As the environment was closed with them: who changed it since forms no group.
  nccl_pins pins;
  /// Of the control group, so that what it tells of an end is why NCCL's groups ended.
  std::shared_ptr<group_fate> fate;
  /// NCCL does not come back from a call: only this process's end frees what it holds. At most
  /// once, from a thread of ours.
  std::function<void(const error&)> stuck;
};

/// Device memory that collectives work on.
struct nccl_memory {
  void* at = nullptr;
  size_t bytes = 0;  // whole pages
  /// Registered with every group, on every rank: NCCL need not copy it where devices reach each
  /// other. Else on none, and this says why.
  bool registered = false;
  std::string why_not;
};

/// All that one rank does with NCCL in one epoch. NCCL wants one thread at a time, and nobody
/// inside when it is told to abort: every call is made here, under a lock. None waits for another
/// rank (blocking = 0), so the lock is free soon. A thread of its own, the keeper, looks after
/// ends: it hears of NCCL's errors and of the other ranks', aborts and destroys. The session lives
/// as long as the keeper, which nothing can stop if NCCL never comes back.
class nccl_session {
 public:
  enum group : size_t { world, tensor, pipeline, groups };

  /// From then on it is to be closed.
  static result<std::shared_ptr<nccl_session>> start(nccl_config c, const nccl_functions& f,
                                                     std::unique_ptr<communicator> control);
  nccl_session(const nccl_session&) = delete;

  /// The groups, from an id that rank 0 tells the others.
  result<void> form();
  /// On all ranks, with the same size. It is the session's, and ends when that is closed.
  result<nccl_memory> allocate(size_t bytes);

  /// One call about a group, and until NCCL is done with it.
  template <class Call>
  result<void> run(nccl_call what, group on, Call&& call) {
    return run_for(config_.timeout, what, on, call);
  }
  /// Until `done` says that the device has done its work.
  result<void> wait(const std::function<bool()>& done);

  result<void> health() const { return why_.get(); }
  /// Ends the group; the others are told that this rank's calls do not fit theirs.
  error refuse(const char* why);
  void abort();
  /// Once all ranks do so, what they made is destroyed; else it is aborted. What failed, if any.
  result<void> close();

  const nccl_config& config() const { return config_; }
  const nccl_functions& library() const { return library_; }
  uint32_t size() const { return control_->size(); }
  /// Null where the grid has no such group besides the world.
  nccl_comm comm(group g) const { return ready_[g]; }

 private:
  /// A thread that is inside NCCL, and since when.
  class inside {
   public:
    /// Not after an end, which whoever has the lock may not come back from.
    explicit inside(nccl_session& s);
    inside(nccl_session& s, std::adopt_lock_t);
    inside(const inside&) = delete;
    ~inside();
    explicit operator bool() const { return is_; }

   private:
    nccl_session& session_;
    bool is_ = false;
  };

  nccl_session(nccl_config c, const nccl_functions& f, std::unique_ptr<communicator> control)
      : config_(std::move(c)), library_(f), control_(std::move(control)) {}

  template <class Call>
  result<void> run_for(std::chrono::milliseconds most, nccl_call what, group on, Call&& call) {
    nccl_status said;
    {
      inside in(*this);
      if (!in) return health();
      what_ = what;
      said = call();
    }
    return said == nccl_status::success ? result<void>() : settle(most, what, on, said);
  }
  result<void> settle(std::chrono::milliseconds most, nccl_call what, group on, nccl_status said);
  nccl_status state_of(group g) const;

  result<void> form_groups();
  result<void> see_environment();
  result<void> split(group into, uint32_t color, uint32_t key);
  result<std::vector<uint64_t>> tell_all(uint64_t mine);
  result<void> give_back(void* memory);
  result<bool> register_all(const nccl_memory& m);
  result<void> deregister_from(size_t first);

  error end(last_word word);
  void heard(error why);
  void end_now();
  void tell_stuck();
  bool held_too_long() const;

  void keep();
  void look();
  void look_at_groups();
  result<void> leave();
  void bury();
  void abort_all();
  void free_memory();

  const nccl_config config_;
  const nccl_functions library_;
  const std::unique_ptr<communicator> control_;

  std::mutex inside_;
  std::atomic<int64_t> inside_since_ = 0;  // ns; 0: nobody is
  std::atomic<nccl_call> what_{};          // was called last

  // NCCL writes `made_` when it likes; `ready_` is what it has said to be made.
  std::array<nccl_comm, groups> made_{}, ready_{};
  struct registration {
    group on;
    nccl_window window;  // NCCL writes it when it likes, so it stays where it is
  };
  std::deque<registration> windows_;
  std::vector<void*> memory_;

  first_error why_;
  std::atomic<bool> ended_ = false, stuck_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool closing_ = false, buried_ = false, over_ = false;  // under mutex_
  std::thread keeper_;
};

}  // namespace lethe

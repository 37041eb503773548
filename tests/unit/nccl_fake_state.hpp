#pragma once

#include <array>
#include <optional>

#include "tests/unit/nccl_fake.hpp"

// What the library that stands for NCCL remembers.

namespace lethe::testing {

inline std::atomic<fake_nccl*> current_fake = nullptr;

/// One operation of a stream, or several that were grouped.
struct fake_batch {
  fake_stream* stream;
  size_t left;
};

/// Puts a rank's part of an operation into a batch.
using fake_post = std::function<void(fake_batch*)>;

/// Memory that data pass through, from one end to the other and again.
struct fake_ring {
  struct channel {
    std::vector<std::byte> bytes;
    size_t at = 0;
  };
  std::vector<channel> channels;
};

struct fake_nccl::group {
  uint64_t id;
  int size;
  std::vector<member*> members;         // by rank
  std::map<uint32_t, uint32_t> splits;  // how many came to each
  uint32_t finalized = 0;
  std::map<uint32_t, uint32_t> registered;
  std::map<uint32_t, size_t> registered_bytes;
};

struct fake_nccl::member {
  group* of;
  int rank;
  uint32_t world_rank;
  nccl_status state = nccl_status::success;
  bool aborted = false, gone = false, finalized = false;
  bool told = false;  // of its failure
  // What is in progress.
  std::optional<nccl_call> busy;
  uint32_t questions = 0;
  bool never = false;
  std::optional<nccl_status> fails;
  std::function<bool()> may_end = [] { return true; };
  std::function<void()> ends = [] {};

  uint32_t calls = 0, splits = 0, registrations = 0;
  std::set<nccl_window> windows;
  std::map<int, fake_ring> rings;  // by who sends messages; -1: everything else

  using shape = std::array<uint64_t, 5>;  // of a call
  std::set<shape> called;
  std::vector<std::weak_ptr<struct fake_work>> work;
};

struct fake_nccl::operation {
  nccl_call what;
  group* of;
  uint32_t number;  // of the group's calls; of messages 0
  size_t count;
  nccl_type type;
  int root;  // or who sends
  int to;    // who receives
  struct part {
    member* whose = nullptr;
    const void* from = nullptr;
    void* into = nullptr;
    fake_batch* batch = nullptr;
  };
  std::vector<part> parts;
  bool done = false;
};

/// A batch of a device that is served: it begins when the device comes to it, again in each run of
/// a graph.
struct fake_work {
  int run();

  fake_nccl& fake;
  fake_nccl::member& whose;
  std::pair<device_queue, fake_stream>& on;
  std::vector<fake_post> posts;
  fake_batch* batch = nullptr;
};

/// Under the fake's lock.
struct fake_streams {
  static void hand_over(fake_nccl& fake, fake_nccl::member& m, void* stream,
                        const fake_nccl::member::shape& shape, fake_post post, bool in_group);
  /// Whether this thread's group has calls.
  static bool grouped();
  static void end_group();
};

/// A thread inside the library on behalf of a rank.
struct fake_visit {
  fake_visit(uint32_t r, bool alone) : fake(*current_fake.load()), rank(r) {
    bool with_another = fake.inside_[rank].fetch_add(1) != 0;
    lock = std::unique_lock(fake.mutex_);
    if (alone && with_another)
      fake.note("two threads are inside NCCL on rank " + std::to_string(rank));
  }
  ~fake_visit() {
    if (!lock) lock.lock();
    --fake.inside_[rank];
    fake.changed_.notify_all();
  }
  /// What a fault makes of a call that has no group, or does not go on behind its caller.
  std::optional<nccl_status> at_once(nccl_call call) {
    nccl_fault* f = fake.fault_of(rank, call);
    if (f == nullptr) return {};
    if (f->what == nccl_fault::never_returns) {
      nccl_status after = f->status;
      fake.changed_.wait(lock, [this] { return fake.let_go_; });
      return call == nccl_call::abort ? nccl_status::success : after;
    }
    return f->status;
  }
  fake_nccl& fake;
  const uint32_t rank;
  std::unique_lock<std::mutex> lock;
};

}  // namespace lethe::testing

#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "parallel/nccl_environment.hpp"
#include "parallel/nccl_library.hpp"

// A library behind the same table as NCCL, for ranks that are threads of the test and devices whose
// memory is the host's. It computes what it is asked for (sums in the order of ranks), does nothing
// before all ranks have asked, fails as it is told to, and notes what NCCL forbids.

namespace lethe::testing {

/// What one rank's call comes to, once.
struct nccl_fault {
  enum kind {
    refused,        // the call returns an error
    fails,          // it begins, and fails later
    never_ends,     // it is in progress for ever
    never_returns,  // the thread stays inside, until let_go()
  };
  uint32_t rank;
  nccl_call call;
  kind what;
  nccl_status status = nccl_status::system_error;
  uint32_t after = 0;  // calls that go well before
};

/// Work that a device is given: 0 when it is done, 600 (not ready) while it goes on.
using device_call = std::function<int()>;
/// A stream of a device that does things when it likes, and may have them captured in graphs.
struct device_queue {
  std::function<void(device_call)> enqueue;
  std::function<bool()> capturing;
};

/// What a device has to do: batches of operations, in order.
struct fake_stream {
  std::atomic<size_t> pending = 0;
  std::deque<struct fake_batch*> order;  // the fake's

  bool idle() const { return pending == 0; }
};

class fake_nccl {
 public:
  struct options {
    uint32_t questions = 0;   // for which each call is in progress before it may end
    bool windows = true;      // devices reach each other's memory
    int without_window = -1;  // a rank whose registration comes to nothing
    nccl_staging staging{2, 4096};
  };
  explicit fake_nccl(options o);
  fake_nccl() : fake_nccl(options{}) {}
  ~fake_nccl();

  static const nccl_functions& table();
  /// Which rank this thread is, for calls that do not say.
  static void be(uint32_t rank);

  /// What is called on that stream is queued there; any other is a fake_stream.
  void serve(void* stream, device_queue q);

  void inject(nccl_fault f);
  bool all_faults_happened();
  /// Rank's process is gone: the others' groups see it.
  void lose(uint32_t rank);
  /// Whoever never returns does, and all who are inside have left.
  void let_go();

  std::vector<std::string> misuses();
  /// What nobody gave back.
  struct rest {
    size_t communicators, windows, pieces_of_memory;
    bool operator==(const rest&) const = default;
  };
  rest left();
  /// Whether memory of NCCL's own holds it.
  bool holds(const std::vector<std::byte>& what);
  uint32_t registrations();
  /// Pieces of memory that were used and given back with something in them.
  size_t given_back_full();

 private:
  friend struct fake_calls;
  friend struct fake_visit;
  friend struct fake_work;
  friend struct fake_streams;

  struct group;
  struct member;
  struct operation;

  nccl_status note(std::string what);
  nccl_fault* fault_of(uint32_t rank, nccl_call call);
  void progress();
  bool ready(const operation& op) const;
  void execute(operation& op);
  void end_part(operation& op, size_t part);
  void pass(std::map<int, struct fake_ring>& rings, int way, const void* data, size_t bytes);
  void drop_operations_of(member& m);

  const options options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<member>> members_;
  std::vector<std::unique_ptr<group>> groups_;
  std::deque<std::unique_ptr<operation>> operations_;
  std::vector<std::unique_ptr<fake_batch>> batches_;
  std::map<void*, size_t> memory_;
  size_t given_back_full_ = 0;
  std::map<void*, std::pair<device_queue, fake_stream>> served_;
  std::deque<std::pair<nccl_fault, bool>> faults_;  // and whether it happened
  std::vector<std::string> misuses_;
  std::map<uint32_t, std::atomic<int>> inside_;  // by rank of a world
  bool let_go_ = false;
  uint32_t registrations_ = 0;
};

}  // namespace lethe::testing

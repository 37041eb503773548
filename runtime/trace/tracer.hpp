#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/trace/trace_stamp.hpp"

namespace lethe {

/// One message taken in hand by an actor. Numbers only.
struct trace_record {
  uint64_t at_ns = 0;  // when, on this process's clock
  uint64_t trace = 0, lamport = 0;
  uint64_t sender = 0, receiver = 0;
  uint64_t type = 0;      // the schema's id
  int64_t queued_ns = 0;  // since it was sent, by two clocks: across hosts it may be below 0
  uint64_t handled_ns = 0;
  uint32_t bytes = 0;
};

enum class trace_mode : uint8_t { off, allowed, all };

struct tracer_config {
  trace_mode mode = trace_mode::all;
  uint32_t records = 65536;                  // kept per thread
  std::function<uint64_t()> now = {};        // in nanoseconds; empty: the steady clock
  std::vector<uint64_t> allowed_types = {};  // with mode `allowed`
};

/// The records of a process. Writing takes no lock: each thread has its own ring, and a thread that
/// ended leaves it to the next one.
class tracer {
 public:
  explicit tracer(tracer_config config);
  ~tracer();
  tracer(const tracer&) = delete;
  tracer& operator=(const tracer&) = delete;

  uint64_t now() const { return config_.now ? config_.now() : steady_now(); }
  /// The Lamport clock: for a message that leaves, and after one that came.
  uint64_t tick() { return clock_.fetch_add(1, std::memory_order_relaxed) + 1; }
  uint64_t meet(uint64_t theirs);

  trace_mode mode() const { return config_.mode; }
  bool records(uint64_t type) const;
  void write(const trace_record& r);

  struct dump {
    std::vector<trace_record> records;  // by time
    uint64_t lost = 0;                  // overwritten

    /// The oldest go, and count as lost.
    void keep_newest(size_t most);
  };
  /// What is kept. Records that are being overwritten meanwhile are left out and counted.
  dump read() const;

 private:
  struct ring;
  struct held_ring;
  static uint64_t steady_now();
  ring& own_ring();

  tracer_config config_;
  uint64_t serial_;
  std::atomic<uint64_t> clock_{0};
  mutable std::mutex lock_;
  std::vector<std::shared_ptr<ring>> rings_;
};

}  // namespace lethe

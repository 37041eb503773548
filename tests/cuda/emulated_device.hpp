#pragma once

#include <map>
#include <memory>

#include "parallel/accelerator.hpp"
#include "tests/cuda/machine.hpp"

namespace lethe::emulated {

/// Puts a call behind what is on an emulated device's stream, or into the graph that it records.
/// not_ready: it goes on, and is made again.
device_error queue_on(device_stream stream, std::function<device_error()> call);

/// A device that is this machine. What is queued runs when its owner waits, so that reading too
/// early, or changing what is still to be copied, is seen. Its memory is full of NaN at first and
/// ends at pages that nobody may touch.
class device final : public accelerator {
 public:
  explicit device(order o = order::forwards) : machine_(o) { machine_.defer(&queued_); }
  ~device() override;

  device_error use() override { return 0; }
  std::byte* allocate(memory_kind kind, size_t bytes) override;
  void free(memory_kind kind, std::byte* at, size_t bytes) override;
  device_stream stream() override { return machine_.stream(); }
  device_error copy(void* to, const void* from, size_t bytes) override;
  device_error copy_stretches(void* to, const void* from, size_t pitch, size_t bytes,
                              size_t count) override;
  device_error begin_graph() override;
  device_error end_graph(device_graph& made) override;
  device_error queue(device_graph graph) override;
  void free(device_graph graph) override;
  device_error finish() override;
  device_error ask(bool& done) override;

  /// What another library has this device do; not_ready: that goes on.
  void enqueue(std::function<device_error()> call) { put(std::move(call)); }
  /// Something was queued and nobody has waited for it.
  bool busy() const { return !queued_.empty(); }
  bool capturing() const { return recorded_ != nullptr; }

  struct counts {
    uint32_t allocations = 0, graphs_run = 0, copies = 0;
    uint64_t graph_nodes = 0;  // recorded, in all graphs
    size_t device_bytes = 0;   // held now, of the device's own memory
    uint32_t waits = 0;        // for what was queued, whether by asking or not
  };
  const counts& counted() const { return counts_; }
  const std::string& fault() const { return machine_.fault(); }
  /// Bytes of the blocks that were given back with something in them.
  const std::vector<size_t>& left_full() const { return left_full_; }
  /// So much memory of its own, and no more.
  void has(size_t bytes) { room_ = bytes; }
  /// No memory from here on.
  void run_out() { empty_ = true; }
  /// Nothing runs from here on.
  void break_down() { broken_ = true; }

 private:
  using calls = machine::calls;
  bool knows(const void* at, size_t bytes) const;
  device_error run_queued();
  device_error put(std::function<device_error()> call);

  machine machine_;
  calls queued_;
  std::unique_ptr<calls> recorded_;
  std::map<device_graph, std::unique_ptr<calls>> graphs_;
  std::map<const std::byte*, size_t> blocks_;
  std::vector<size_t> left_full_;
  counts counts_;
  size_t room_ = SIZE_MAX;
  bool empty_ = false, broken_ = false;
};

}  // namespace lethe::emulated

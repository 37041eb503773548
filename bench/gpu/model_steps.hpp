#pragma once

#include "parallel/device_shard.hpp"

namespace lethe::bench {

/// What is run of a model.
struct run_sizes {
  std::vector<uint32_t> streams{1, 2, 4, 8, 16, 32, 64};  // rising
  uint32_t context = 256;                                 // before the first decode
  std::vector<uint32_t> prompts{512, 4096};
  uint32_t warm_ups = 5, decodes = 50, prefills = 5;
  uint32_t page_tokens = 16;

  uint32_t decodes_in_all() const { return warm_ups + decodes; }
  /// Tokens that a stream has keys and values of in the middle of what is timed.
  double seen() const { return context + warm_ups + (decodes + 1) / 2.0; }
  uint32_t stream_pages() const { return pages_for(context + decodes_in_all()); }
  uint32_t pages_for(uint32_t tokens) const { return (tokens + page_tokens - 1) / page_tokens; }
};

/// Room for all of it, on one device.
shard_config config_for(const model_shape& shape, const run_sizes& sizes);

/// Seconds of each timed step, and what each stream was answered, token by token.
struct timed_steps {
  std::vector<double> seconds;
  std::vector<std::vector<uint32_t>> answers;
};

/// Tells a shard steps as an engine's planner does: pages that are no neighbours, greedy draws on
/// the device. Times are the host's, from a step's plan to its answer.
class model_steps {
 public:
  model_steps(device_shard& shard, const model_shape& shape, const run_sizes& sizes)
      : shard_(shard), vocab_(shape.vocab), pages_(config_for(shape, sizes).pages), sizes_(sizes) {}

  /// A prompt in one step, over and over; what it is answered must not change.
  result<timed_steps> prefill(uint32_t tokens);
  /// Contexts of the first so many streams.
  result<void> fill(uint32_t streams);
  /// The first so many streams go on from their contexts, all together.
  result<timed_steps> decode(uint32_t streams);
  /// The end of all streams.
  result<void> wipe();

 private:
  /// A token of a stream's context.
  uint32_t context_token(uint32_t stream, uint32_t position) const;
  void add(uint32_t stream, uint32_t position, std::span<const uint32_t> ids, bool answered,
           uint32_t tables);
  void add_context(uint32_t stream, uint32_t begin, uint32_t end, bool answered, uint32_t tables);
  void clear();
  result<double> run();

  device_shard& shard_;
  const uint32_t vocab_, pages_;
  const run_sizes sizes_;
  uint64_t steps_ = 0;
  step_plan plan_;
  std::vector<uint32_t> ids_, drawn_;
};

}  // namespace lethe::bench

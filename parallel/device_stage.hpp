#pragma once

#include <span>

#include "parallel/device_room.hpp"
#include "parallel/kv_pool.hpp"

namespace lethe {

/// Runs of an attention: `decodes` of one token, then `longer`. `tiles` bounds what a decode sees.
struct run_counts {
  uint32_t decodes = 0, longer = 0;
  uint32_t longest = 0;  // tokens of a run
  uint32_t tiles = 0;
  uint32_t all() const { return decodes + longer; }
};

/// Rows of the residual stream that become logits.
struct kept_rows {
  uint32_t from, to, count;
};

/// What of a step the host decides with: which kernels run and how large. Numbers that differ
/// between two steps of a form are in the device's inputs.
struct step_form {
  uint32_t tokens = 0, logit_rows = 0;
  run_counts runs, last;
  std::span<const kept_rows> kept;  // none: all are, as they lie
};

/// The layers of a model on a device: queues a step's work and waits for nothing.
class device_stage {
 public:
  device_stage(accelerator& on, const cuda_row& row, const model_weights& weights,
               const device_room& room, const device_inputs& in, const device_buffers& b,
               const kv_layout& layout, std::byte* pool);

  /// From token ids to logits. What could not be queued first.
  device_error queue(const step_form& form);

 private:
  void attention(uint32_t layer, const step_form& form);
  void project(const attention_weights& l);
  void place(uint32_t layer, const step_form& form);
  void attend(uint32_t layer, const token_run* runs, const run_counts& counts);
  void narrow(const step_form& form);
  void feed_forward(const mlp_weights& l);
  void head();

  void norm(const float* gain, bool quantized);
  void quantize(const float* x, uint32_t cols);
  void multiply(const matrix& m, const float* bias, const float* x, float* y);
  void add_joined() { note(row_.add(b_.joined, x_, size_t{rows_} * shape_.hidden, stream_)); }
  device_kv kv_of(uint32_t layer) const;
  void note(device_error e) {
    if (error_ == 0) error_ = e;
  }

  accelerator& on_;
  const cuda_row& row_;
  const device_stream stream_;
  const model_weights& weights_;
  const model_shape& shape_;
  const device_room& room_;
  const device_inputs in_;
  const device_buffers b_;
  const kv_layout layout_;
  std::byte* const pool_;

  uint32_t rows_ = 0;  // of the residual stream
  float* x_ = nullptr;
  device_error error_ = 0;
};

}  // namespace lethe

#pragma once

#include <initializer_list>
#include <span>

#include "parallel/device_room.hpp"
#include "parallel/device_weights.hpp"
#include "parallel/kv_pool.hpp"
#include "parallel/nccl_world.hpp"

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

/// What a stage works with and on. What it refers to outlives it.
struct device_setting {
  accelerator& on;
  const cuda_row& row;
  const device_weights& weights;
  const device_room& room;
  shard_part part;
  std::byte* inputs;  // room.inputs_bytes
  device_buffers b;
  kv_layout layout;
  std::byte* pool;
  nccl_world* world;  // null: a rank alone
  float* shared;      // room.shared_floats, where tensor ranks get each other's
};

/// The layers of one rank on a device: queues a step's work and waits for nothing.
class device_stage {
 public:
  explicit device_stage(const device_setting& with);

  /// From token ids to logits, or the rank's part of that way. What could not be queued first. What
  /// NCCL fails at ends the world, which says so when it is waited for.
  device_error queue(const step_form& form);

 private:
  // device_stage.cpp
  void attention(uint32_t layer, const step_form& form);
  void project(const attention_weights& l);
  void place(uint32_t layer, const run_counts& runs);
  void attend(uint32_t layer, const token_run* runs, const run_counts& counts, float* out);
  void narrow(const step_form& form);
  void feed_forward(const mlp_weights& l);

  void norm(const float* gain, std::initializer_list<dtype> readers);
  void quantize(const float* x, uint32_t cols, const device_activations& to);
  void multiply(std::initializer_list<device_product> all, const float* x);
  device_product product(const matrix& m, const product_part& part, const float* bias,
                         float* y) const;
  device_activations room_for(std::initializer_list<dtype> readers, float* f, size_t stride) const;
  device_kv kv_of(uint32_t layer) const;

  // device_stage_ranks.cpp
  void enter();
  void leave();
  float* columns_for(const matrix& m, float* own) const;
  device_activations input_of(const matrix& m, float* own) const;
  void join(const matrix& m, const float* bias, const float* own);
  void join_sums(const matrix& m, const float* own, const device_output& to);
  void join_gathered(const matrix& m, const device_output& to);
  void gather(size_t each);
  void head();
  void carry_logits(size_t each);
  size_t floats_of(uint32_t width) const { return size_t{rows_} * width; }
  float* own_place(size_t each) const { return shared_ + part_.tensor_rank * each; }

  void note(device_error e) {
    if (error_ == 0) error_ = e;
  }

  accelerator& on_;
  const cuda_row& row_;
  const device_stream stream_;
  const model_weights& weights_;
  const weight_parts& parts_;
  const model_shape& shape_;
  const shard_part part_;
  const device_room& room_;
  std::byte* const inputs_;
  const device_buffers b_;
  const kv_layout layout_;
  std::byte* const pool_;
  nccl_world* const world_;
  float* const shared_;

  device_inputs in_{};  // of the step that is queued
  uint32_t rows_ = 0;   // of the residual stream
  float* x_ = nullptr;  // one of b_.x, or b_.kept
  device_error error_ = 0;
};

}  // namespace lethe

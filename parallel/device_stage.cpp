#include "parallel/device_stage.hpp"

#include <algorithm>
#include <cmath>

namespace lethe {

device_stage::device_stage(const device_setting& with)
    : on_(with.on),
      row_(with.row),
      stream_(with.on.stream()),
      weights_(with.weights.get()),
      parts_(with.weights.parts()),
      shape_(weights_.shape),
      part_(with.part),
      room_(with.room),
      inputs_(with.inputs),
      b_(with.b),
      layout_(with.layout),
      pool_(with.pool),
      world_(with.world),
      shared_(with.shared) {}

device_error device_stage::queue(const step_form& form) {
  error_ = 0;
  rows_ = form.tokens;
  in_ = room_.inputs_at(inputs_, rows_);
  x_ = b_.x[0];
  enter();
  for (uint32_t layer = part_.layers.begin; layer < part_.layers.end; ++layer) {
    attention(layer, form);
    if (rows_ == 0) return error_;
    feed_forward(weights_.layers[layer].mlp);
  }
  part_.last() ? head() : leave();
  return error_;
}

void device_stage::attention(uint32_t layer, const step_form& form) {
  const attention_weights& l = weights_.layers[layer].attention;
  norm(l.norm, !is_float(l.q.type) || !is_float(l.k.type) || !is_float(l.v.type));
  project(l);
  place(layer, form);
  // Behind the last layer's keys and values only rows that become logits matter.
  bool final = part_.last() && layer + 1 == part_.layers.end;
  if (final) narrow(form);
  if (rows_ == 0) return;
  float* out = room_for(l.o, b_.attended);
  attend(layer, final ? in_.last_runs : in_.runs, final ? form.last : form.runs, out);
  join(l.o, l.o_bias, out);
}

void device_stage::project(const attention_weights& l) {
  multiply(l.q, parts_.q(), l.q_bias, b_.normed, b_.q);
  multiply(l.k, parts_.kv(), l.k_bias, b_.normed, b_.k);
  multiply(l.v, parts_.kv(), l.v_bias, b_.normed, b_.v);
}

/// Norms and turns queries and keys; keys and values go to their pages.
void device_stage::place(uint32_t layer, const step_form& form) {
  const attention_weights& l = weights_.layers[layer].attention;
  uint32_t d = shape_.head_dim, rotary = shape_.rope.rotary;
  struct side {
    float* rows;
    uint32_t heads;
    const float* gain;
  };
  uint32_t heads = part_.heads.size(), kv_heads = part_.kv_heads.size();
  for (side s : {side{b_.q, heads, l.q_norm}, side{b_.k, kv_heads, l.k_norm}}) {
    if (s.gain)
      note(row_.rms_norm(s.rows, d, s.gain, s.rows, d, rows_ * s.heads, d, shape_.norm_eps,
                         stream_));
    if (rotary != 0)
      note(row_.rope(s.rows, size_t{s.heads} * d, rows_, s.heads, d, rotary, in_.cosines, in_.sines,
                     stream_));
  }
  note(row_.kv_store(kv_of(layer), in_.runs, form.runs.all(), form.runs.longest, kv_heads, b_.k,
                     b_.v, room_.kv, stream_));
}

/// Decodes in turns of as many as there is room for scores, then the longer runs.
void device_stage::attend(uint32_t layer, const token_run* runs, const run_counts& counts,
                          float* out) {
  uint32_t window = layer < shape_.window.size() ? shape_.window[layer] : 0;
  uint32_t group = shape_.heads / shape_.kv_heads;
  device_attention a{.kv = kv_of(layer),
                     .runs = runs,
                     .run_count = 0,
                     .tokens_max = 1,
                     .q = b_.q,
                     .q_stride = room_.q,
                     .out = out,
                     .out_stride = room_.q,
                     .heads = part_.heads.size(),
                     .kv_heads = part_.kv_heads.size(),
                     .first_head = part_.heads.begin % group,
                     .group = group,
                     .window = window,
                     .scale = 1.0f / std::sqrt(float(shape_.head_dim)),
                     .tiles_max = tiles_in(window, counts.tiles),
                     .scratch = b_.scores};
  for (uint32_t done = 0; done < counts.decodes; done += a.run_count) {
    a.runs = runs + done;
    a.run_count =
        uint32_t(std::min<size_t>(room_.decodes_at_once(a.tiles_max), counts.decodes - done));
    note(row_.attend(a, stream_));
  }
  if (counts.longer == 0) return;
  a.runs = runs + counts.decodes;
  a.run_count = counts.longer;
  a.tokens_max = counts.longest;
  note(row_.attend(a, stream_));
}

/// The residual rows that become logits, in the order of the logits, in the second buffer.
void device_stage::narrow(const step_form& form) {
  if (form.kept.empty() && form.logit_rows == form.tokens) return;
  size_t row_bytes = room_.hidden * sizeof(float);
  for (const kept_rows& k : form.kept)
    note(on_.copy(b_.x[1] + k.to * room_.hidden, x_ + k.from * room_.hidden, k.count * row_bytes));
  rows_ = form.logit_rows;
  x_ = b_.x[1];
}

void device_stage::feed_forward(const mlp_weights& l) {
  norm(l.norm, !is_float(l.gate.type) || !is_float(l.up.type));
  multiply(l.gate, parts_.ffn(), l.gate_bias, b_.normed, b_.gate);
  multiply(l.up, parts_.ffn(), l.up_bias, b_.normed, b_.up);
  float* out = room_for(l.down, b_.gate);
  note(row_.silu_multiply(b_.gate, b_.up, out, rows_ * room_.ffn, stream_));
  join(l.down, l.down_bias, out);
}

/// And quantized, where a weight wants it so.
void device_stage::norm(const float* gain, bool quantized) {
  note(row_.rms_norm(x_, room_.hidden, gain, b_.normed, room_.hidden, rows_, shape_.hidden,
                     shape_.norm_eps, stream_));
  if (quantized) quantize(b_.normed, shape_.hidden);
}

void device_stage::quantize(const float* x, uint32_t cols) {
  note(row_.quantize(x, cols, rows_, cols, b_.quants, b_.scales, b_.sums, stream_));
}

/// The part that the rank has, times rows of just its columns, to rows of just its outputs.
void device_stage::multiply(const matrix& m, const product_part& part, const float* bias,
                            const float* x, float* y) {
  uint32_t outputs = part.row_end - part.row_begin;
  activations in{
      .rows = rows_, .f = x, .stride = columns_of(m, part), .q = {b_.quants, b_.scales, b_.sums}};
  note(row_.matmul(held(m, part), part, in, y, outputs, stream_));
  if (bias) note(row_.add_bias(bias + part.row_begin, y, outputs, rows_, outputs, stream_));
}

device_kv device_stage::kv_of(uint32_t layer) const {
  size_t half = layout_.half_bytes();
  size_t key = size_t{layer - part_.layers.begin} * layout_.kv_heads * 2 * half;
  return {.pool = pool_,
          .page_bytes = layout_.page_bytes(),
          .key_offset = key,
          .value_offset = key + half,
          .head_bytes = 2 * half,
          .pages = in_.pages,
          .page_tokens = layout_.page_tokens,
          .type = layout_.type,
          .head_dim = layout_.head_dim};
}

}  // namespace lethe

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
  norm(l.norm, {l.q.type, l.k.type, l.v.type});
  project(l);
  place(layer, form.runs);
  // Behind the last layer's keys and values only rows that become logits matter.
  bool final = part_.last() && layer + 1 == part_.layers.end;
  if (final) narrow(form);
  if (rows_ == 0) return;
  float* out = columns_for(l.o, b_.attended);
  attend(layer, final ? in_.last_runs : in_.runs, final ? form.last : form.runs, out);
  quantize(out, uint32_t(room_.q), input_of(l.o, out));
  join(l.o, l.o_bias, out);
}

void device_stage::project(const attention_weights& l) {
  multiply({product(l.q, parts_.q(), l.q_bias, b_.q), product(l.k, parts_.kv(), l.k_bias, b_.k),
            product(l.v, parts_.kv(), l.v_bias, b_.v)},
           b_.normed);
}

/// Queries and keys normed and turned; keys and values go to their pages. Runs of one token, then
/// the longer ones, whose blocks would be idle for those.
void device_stage::place(uint32_t layer, const run_counts& runs) {
  const attention_weights& l = weights_.layers[layer].attention;
  device_heads h{.kv = kv_of(layer),
                 .runs = in_.runs,
                 .run_count = runs.decodes,
                 .tokens_max = 1,
                 .q = b_.q,
                 .q_stride = room_.q,
                 .k = b_.k,
                 .v = b_.v,
                 .kv_stride = room_.kv,
                 .heads = part_.heads.size(),
                 .kv_heads = part_.kv_heads.size(),
                 .q_gain = l.q_norm,
                 .k_gain = l.k_norm,
                 .eps = shape_.norm_eps,
                 .rotary = shape_.rope.rotary,
                 .cosines = in_.cosines,
                 .sines = in_.sines};
  if (runs.decodes != 0) note(row_.place_heads(h, stream_));
  if (runs.longer == 0) return;
  h.runs = in_.runs + runs.decodes;
  h.run_count = runs.longer;
  h.tokens_max = runs.longest;
  note(row_.place_heads(h, stream_));
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

/// The residual rows that become logits, in the order of the logits, in a buffer of their own.
void device_stage::narrow(const step_form& form) {
  if (form.kept.empty() && form.logit_rows == form.tokens) return;
  size_t row_bytes = room_.hidden * sizeof(float);
  for (const kept_rows& k : form.kept)
    note(on_.copy(b_.kept + k.to * room_.hidden, x_ + k.from * room_.hidden, k.count * row_bytes));
  rows_ = form.logit_rows;
  x_ = b_.kept;
}

void device_stage::feed_forward(const mlp_weights& l) {
  norm(l.norm, {l.gate.type, l.up.type});
  multiply({product(l.gate, parts_.ffn(), l.gate_bias, b_.gate),
            product(l.up, parts_.ffn(), l.up_bias, b_.up)},
           b_.normed);
  float* out = columns_for(l.down, b_.gate);
  note(row_.silu_multiply(b_.gate, b_.up, input_of(l.down, out), rows_ * room_.ffn, stream_));
  join(l.down, l.down_bias, out);
}

/// As those who read it want it.
void device_stage::norm(const float* gain, std::initializer_list<dtype> readers) {
  note(row_.rms_norm(x_, room_.hidden, gain, room_for(readers, b_.normed, room_.hidden), rows_,
                     shape_.hidden, shape_.norm_eps, stream_));
}

/// Rows back to back, where who reads them wants them so.
void device_stage::quantize(const float* x, uint32_t cols, const device_activations& to) {
  if (to.q) note(row_.quantize(x, cols, rows_, cols, to, stream_));
}

device_activations device_stage::room_for(std::initializer_list<dtype> readers, float* f,
                                          size_t stride) const {
  device_activations to;
  for (dtype type : readers)
    if (is_float(type))
      to.f = f, to.stride = stride;
    else
      to.q = b_.quants, to.scales = b_.scales, to.sums = b_.sums;
  return to;
}

/// The part that the rank has, times rows of just its columns, to rows of just its outputs.
device_product device_stage::product(const matrix& m, const product_part& part, const float* bias,
                                     float* y) const {
  return {.w = held(m, part),
          .part = part,
          .to = {.y = y,
                 .stride = part.row_end - part.row_begin,
                 .bias = bias == nullptr ? nullptr : bias + part.row_begin}};
}

void device_stage::multiply(std::initializer_list<device_product> all, const float* x) {
  const device_product& any = *all.begin();
  activations in{.rows = rows_,
                 .f = x,
                 .stride = columns_of(any.w.of, any.part),
                 .q = {b_.quants, b_.scales, b_.sums}};
  note(row_.matmul(std::span(all.begin(), all.size()), in, stream_));
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

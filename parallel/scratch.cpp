#include "parallel/scratch.hpp"

#include <algorithm>

#include "parallel/shard.hpp"
#include "runtime/base/wipe.hpp"

namespace lethe {

/// Floats of each buffer, per token unless the name says otherwise.
struct scratch::sizes {
  size_t hidden, q, kv, ffn, gathered, widest, rounded, pairs, logits_per_row, attention_per_step;
  size_t spans_per_step;
};

namespace {

/// Whether some layer's weight must be multiplied whole, with all ranks' inputs gathered.
bool gathers(const model_weights& weights, const shard_part& part) {
  return std::ranges::any_of(weights.layers, [&](const layer_weights& l) {
    return !cuts_along_k(l.attention.o.type, l.attention.o.cols, part.tensor_size) ||
           !cuts_along_k(l.mlp.down.type, l.mlp.down.cols, part.tensor_size);
  });
}

size_t logits_on_the_way(const model_shape& shape, const shard_part& part) {
  if (!part.last() || part.tensor_size == 1) return 0;
  return part.tensor_rank == 0 ? shape.vocab - part.vocab.size() : part.vocab.size();
}

/// For the longest decodes of which each thread may have a quarter; none for one thread.
size_t spans_per_step(const model_shape& shape, const shard_config& config, uint32_t group) {
  size_t keys = size_t{config.pages} * config.page_tokens;
  if (shape.context_max != 0) keys = std::min(keys, size_t{shape.context_max});
  if (config.threads == 1 || keys <= span_keys) return 0;
  size_t spans = (keys + span_keys - 1) / span_keys * parts_of_thread * config.threads;
  return std::min(spans * group * span_floats(shape.head_dim), config.spans_bytes / sizeof(float));
}

}  // namespace

result<scratch> scratch::make(const model_weights& weights, const shard_config& config) {
  const model_shape& shape = weights.shape;
  const shard_part& part = config.part;
  sizes s{};
  s.hidden = shape.hidden;
  s.q = size_t{part.heads.size()} * shape.head_dim;
  s.kv = size_t{part.kv_heads.size()} * shape.head_dim;
  s.ffn = part.ffn.size();
  if (gathers(weights, part))
    s.gathered = std::max(size_t{shape.heads} * shape.head_dim, size_t{shape.ffn});
  s.widest = std::max({s.hidden, s.q, s.ffn, s.gathered});
  s.rounded = config.row->round ? s.widest : 0;
  s.pairs = shape.rope.rotary / 2;
  s.logits_per_row = logits_on_the_way(shape, part);
  uint32_t group = std::min(shape.heads / shape.kv_heads, part.heads.size());
  s.attention_per_step =
      config.threads *
      ((attention_scratch_floats(attention_block, group, shape.head_dim) + 15) / 16 * 16);
  s.spans_per_step = spans_per_step(shape, config, group);
  scratch made;
  made.lay_out(s);  // for the lengths
  size_t bytes = 0;
  for (extent& e : made.extents_) {
    size_t units[] = {config.step_tokens, std::min(config.logit_rows, config.step_tokens), 1};
    e.offset = bytes;
    bytes += (units[size_t(e.per)] * e.unit_bytes + 63) / 64 * 64;
  }
  bytes += x_units_beyond * sizeof(x_rounded);  // wherever units end, so much can be read
  auto memory = region::map(bytes, "activations");
  if (!memory) return memory.why();
  made.memory_ = *std::move(memory);
  made.lay_out(s);  // for the addresses
  made.buffers_.attention_floats = s.attention_per_step / config.threads;
  made.buffers_.span_room = s.spans_per_step;
  return made;
}

/// Called twice: first it notes what each buffer takes, then it hands out where each lies.
void scratch::lay_out(const sizes& s) {
  bool first = memory_.size() == 0 && extents_.empty();
  size_t next = 0;
  auto place = [&](auto*& pointer, unit per, size_t count) {
    using T = std::remove_reference_t<decltype(*pointer)>;
    if (first) return extents_.push_back({per, 0, count * sizeof(T)});
    pointer = reinterpret_cast<T*>(memory_.data() + extents_[next++].offset);
  };
  buffers& b = buffers_;
  place(b.x[0], unit::token, s.hidden);
  place(b.x[1], unit::token, s.hidden);
  place(b.normed, unit::token, s.hidden);
  place(b.q, unit::token, s.q);
  place(b.k, unit::token, s.kv);
  place(b.v, unit::token, s.kv);
  place(b.attended, unit::token, s.q);
  place(b.gate, unit::token, s.ffn);
  place(b.up, unit::token, s.ffn);
  place(b.joined, unit::token, s.hidden);
  place(b.gathered, unit::token, s.gathered);
  place(b.wide, unit::token, s.gathered);
  place(b.cosines, unit::token, s.pairs);
  place(b.sines, unit::token, s.pairs);
  place(b.units, unit::token, (s.widest + 31) / 32);
  place(b.rounded, unit::token, (s.rounded + 31) / 32);
  place(b.logits, unit::logit_row, s.logits_per_row);
  place(b.attention, unit::step, s.attention_per_step);
  place(b.spans, unit::step, s.spans_per_step);
}

scratch::~scratch() { wipe(0, 1); }

void scratch::touch(const step_plan& plan) {
  size_t now[] = {plan.tokens, plan.logit_rows, 1};
  for (size_t i = 0; i < 3; ++i) touched_.count[i] = std::max(touched_.count[i], now[i]);
}

void scratch::wipe(uint32_t thread, uint32_t threads) {
  for (const extent& e : extents_) {
    size_t bytes = touched_.count[size_t(e.per)] * e.unit_bytes;
    size_t begin = bytes * thread / threads, end = bytes * (thread + 1) / threads;
    if (begin < end) lethe::wipe(memory_.data() + e.offset + begin, end - begin);
  }
}

}  // namespace lethe

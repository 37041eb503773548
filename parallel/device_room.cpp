#include "parallel/device_room.hpp"

#include <algorithm>

namespace lethe {
namespace {

/// Hands out a block's memory from its begin; with none it counts.
class carving {
 public:
  explicit carving(std::byte* at) : begin_(reinterpret_cast<uintptr_t>(at)) {}
  template <class T>
  void take(T*& pointer, size_t count) {
    pointer = reinterpret_cast<T*>(begin_ + used_);
    used_ += (count * sizeof(T) + 255) / 256 * 256;
  }
  size_t used() const { return used_; }

 private:
  uintptr_t begin_;
  size_t used_ = 0;
};

size_t carve(const device_room& r, std::byte* at, device_inputs& to) {
  carving c(at);
  c.take(to.ids, r.tokens);
  c.take(to.runs, r.tokens);
  c.take(to.last_runs, r.tokens);
  c.take(to.cosines, r.tokens * r.pairs);
  c.take(to.sines, r.tokens * r.pairs);
  c.take(to.pages, r.pages());
  return c.used();
}

size_t carve(const device_room& r, std::byte* at, device_buffers& to) {
  carving c(at);
  size_t widest = std::max({r.hidden, r.q, r.ffn});
  c.take(to.x[0], r.tokens * r.hidden);
  c.take(to.x[1], r.logit_rows * r.hidden);
  c.take(to.normed, r.tokens * r.hidden);
  c.take(to.q, r.tokens * r.q);
  c.take(to.k, r.tokens * r.kv);
  c.take(to.v, r.tokens * r.kv);
  c.take(to.attended, r.tokens * r.q);
  c.take(to.gate, r.tokens * r.ffn);
  c.take(to.up, r.tokens * r.ffn);
  c.take(to.joined, r.tokens * r.hidden);
  c.take(to.quants, r.tokens * widest);
  c.take(to.scales, (r.tokens * widest + 31) / 32);
  c.take(to.sums, (r.tokens * widest + 15) / 16);
  c.take(to.logits, r.logit_rows * r.vocab);
  c.take(to.scores, r.score_floats);
  return c.used();
}

}  // namespace

device_room device_room::of(const model_shape& shape, const shard_config& config,
                            size_t score_tiles) {
  device_room r{};
  r.tokens = config.step_tokens;
  r.logit_rows = std::min(config.logit_rows, config.step_tokens);
  r.hidden = shape.hidden, r.ffn = shape.ffn, r.vocab = shape.vocab;
  r.q = size_t{shape.heads} * shape.head_dim;
  r.kv = size_t{shape.kv_heads} * shape.head_dim;
  r.pairs = shape.rope.rotary / 2;
  r.table_pages = config.pages;
  if (shape.context_max != 0)
    r.table_pages = std::min<size_t>(
        config.pages, (shape.context_max + config.page_tokens - 1) / config.page_tokens);
  r.tiles = uint32_t((r.table_pages * config.page_tokens + attention_tile - 1) / attention_tile);
  size_t at_once = std::max<size_t>(r.tiles, std::min(score_tiles, r.tokens * r.tiles));
  r.score_floats = at_once * attention_tile * shape.heads;
  return r;
}

size_t device_room::inputs_bytes() const {
  device_inputs none;
  return carve(*this, nullptr, none);
}
size_t device_room::buffers_bytes() const {
  device_buffers none;
  return carve(*this, nullptr, none);
}
device_inputs device_room::inputs_at(std::byte* at) const {
  device_inputs made;
  carve(*this, at, made);
  return made;
}
device_buffers device_room::buffers_at(std::byte* at) const {
  device_buffers made;
  carve(*this, at, made);
  return made;
}

}  // namespace lethe

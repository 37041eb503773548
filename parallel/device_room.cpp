#include "parallel/device_room.hpp"

#include "parallel/nccl_abi.hpp"

namespace lethe {
namespace {

// Each takes 12 bytes for an id of the vocabulary; more take turns.
constexpr size_t draws_at_once = 64;

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

/// Floats that a tensor rank tells the others of a token's o or down.
size_t told_of(const matrix& m, uint32_t ranks) {
  if (cuts_along_k(m.type, m.cols, ranks)) return m.rows;
  return std::max(widest_part(m.cols, 1, ranks), widest_part(m.rows, panel_rows, ranks));
}

/// Of all layers of all stages: ranks ask for memory of the same size.
void add_shared(device_room& r, const model_weights& weights, const shard_part& part) {
  uint32_t n = part.tensor_size;
  if (part.stages > 1) r.shared_floats = r.tokens * r.hidden;
  if (n == 1) return;
  size_t told = 0;
  for (const layer_weights& l : weights.layers)
    for (const matrix* m : {&l.attention.o, &l.mlp.down}) {
      told = std::max(told, told_of(*m, n));
      if (!cuts_along_k(m->type, m->cols, n)) r.wide = std::max(r.wide, size_t{m->cols});
    }
  size_t vocab = widest_part(weights.shape.vocab, panel_rows, n);
  r.shared_floats = std::max({r.shared_floats, n * r.tokens * told, n * r.logit_rows * vocab});
}

size_t carve(const device_room& r, size_t rows, std::byte* at, device_inputs& to) {
  carving c(at);
  c.take(to.ids, rows);
  c.take(to.runs, rows);
  c.take(to.last_runs, rows);
  c.take(to.cosines, rows * r.pairs);
  c.take(to.sines, rows * r.pairs);
  c.take(to.draws, r.vocab == 0 ? 0 : std::min(rows, r.logit_rows));
  c.take(to.pages, r.pages());
  return c.used();
}

size_t carve(const device_room& r, std::byte* at, device_buffers& to) {
  carving c(at);
  size_t widest = std::max({r.hidden, r.q, r.ffn, r.wide});
  for (float*& x : to.x) c.take(x, r.tokens * r.hidden);
  c.take(to.kept, r.logit_rows * r.hidden);
  c.take(to.normed, r.tokens * r.hidden);
  c.take(to.q, r.tokens * r.q);
  c.take(to.k, r.tokens * r.kv);
  c.take(to.v, r.tokens * r.kv);
  c.take(to.attended, r.tokens * r.q);
  c.take(to.gate, r.tokens * r.ffn);
  c.take(to.up, r.tokens * r.ffn);
  c.take(to.wide, r.tokens * r.wide);
  c.take(to.quants, r.tokens * widest);
  c.take(to.scales, (r.tokens * widest + 31) / 32);
  c.take(to.sums, (r.tokens * widest + 15) / 16);
  c.take(to.logits, r.logit_rows * r.vocab);
  c.take(to.scores, r.score_floats);
  c.take(to.draw_weights, r.draws * draw_whole(r.vocab));
  c.take(to.draw_places, r.draws * 2 * draw_whole(r.vocab));
  c.take(to.drawn, r.vocab == 0 ? 0 : r.logit_rows);
  return c.used();
}

}  // namespace

device_room device_room::of(const model_weights& weights, const shard_config& config,
                            arithmetic how, size_t score_tiles) {
  const model_shape& shape = weights.shape;
  const shard_part& part = config.part;
  device_room r{};
  r.tokens = config.step_tokens;
  r.logit_rows = std::min(config.logit_rows, config.step_tokens);
  r.hidden = shape.hidden, r.ffn = part.ffn.size();
  r.vocab = part.last() && part.tensor_rank == 0 ? shape.vocab : 0;
  r.q = size_t{part.heads.size()} * shape.head_dim;
  r.kv = size_t{part.kv_heads.size()} * shape.head_dim;
  r.draws = std::min(r.logit_rows, draws_at_once);
  add_shared(r, weights, part);
  r.pairs = shape.rope.rotary / 2;
  r.table_pages = config.pages;
  if (shape.context_max != 0)
    r.table_pages = std::min<size_t>(
        config.pages, (shape.context_max + config.page_tokens - 1) / config.page_tokens);
  r.tiles = uint32_t((r.table_pages * config.page_tokens + attention_tile - 1) / attention_tile);
  r.how = how, r.heads = part.heads.size(), r.head_dim = shape.head_dim;
  size_t longest = decode_scratch_floats(how, 1, r.heads, r.head_dim, r.tiles);
  size_t of_head = score_tiles * attention_tile;
  if (keeps_scores(how, r.head_dim)) {
    // Spans of as many decodes as have these tiles: attention_spans, of each, is no more.
    size_t spans = score_tiles / span_tiles + 2 * std::min(score_tiles, r.tokens);
    of_head += spans * span_floats(r.head_dim);
  }
  r.score_floats = std::max(longest, std::min(of_head * r.heads, r.tokens * longest));
  return r;
}

size_t device_room::inputs_bytes() const {
  device_inputs none;
  return carve(*this, tokens, nullptr, none);
}
size_t device_room::buffers_bytes() const {
  device_buffers none;
  return carve(*this, nullptr, none);
}
size_t device_room::shared_bytes() const {
  constexpr size_t page = nccl_window_alignment;
  return (shared_floats * sizeof(float) + page - 1) / page * page;
}
device_inputs device_room::inputs_at(std::byte* at, size_t rows) const {
  device_inputs made;
  carve(*this, rows, at, made);
  return made;
}
device_buffers device_room::buffers_at(std::byte* at) const {
  device_buffers made;
  carve(*this, at, made);
  return made;
}

}  // namespace lethe

#include "parallel/stage.hpp"

#include <cmath>

namespace lethe {

stage::stage(const model_weights& weights, const shard_config& config, communicator& tensor,
             communicator& world, const buffers& b, kv_pool& pool, team& threads)
    : weights_(weights),
      shape_(weights.shape),
      config_(config),
      part_(config_.part),
      row_(*config.row),
      tensor_(tensor),
      world_(world),
      b_(b),
      pool_(pool),
      team_(threads),
      frequencies_(rope_frequencies(weights.shape.rope)),
      magnitude_(rope_magnitude(weights.shape.rope)),
      q_cols_(part_.heads.size() * shape_.head_dim),
      kv_cols_(part_.kv_heads.size() * shape_.head_dim),
      panels_(config.spin),
      extents_(part_.tensor_size),
      watch_(config.timed) {
  queries_.all.reserve(config.step_tokens);
  last_queries_.all.reserve(config.step_tokens);
}

void stage::prepare(const step_plan& plan, const step_data& data) {
  plan_ = &plan;
  data_ = &data;
  // What the last step sent may still be on its way.
  if (!part_.last()) slot_ ^= 1;
  queries_.clear();
  last_queries_.clear();
  for (const plan_entry& e : plan.entries) {
    add_run(queries_, e, e.tokens, e.first_token);
    if (e.logit_rows != 0) add_run(last_queries_, e, e.logit_rows, e.first_logit_row);
  }
  share_out(queries_);
  share_out(last_queries_);
}

void stage::run(uint32_t thread) {
  walk w{thread, plan_->tokens, b_.x[slot_]};
  w.multiplied = panels_.here();
  if (!enter(w)) return;
  for (uint32_t layer = part_.layers.begin; layer < part_.layers.end; ++layer) {
    if (!attention(w, layer)) return;
    if (w.rows == 0) return;
    // A mixture of experts goes here, as the other kind of feed-forward.
    if (!feed_forward(w, weights_.layers[layer].mlp)) return;
  }
  part_.last() ? head(w) : leave(w);
}

bool stage::enter(walk& w) {
  turn_tables(w);
  if (part_.first()) {
    range mine = share(w, w.rows);
    for (uint32_t r = mine.begin; r < mine.end; ++r)
      row_.row_to_float(weights_.embed, data_->token_ids[r], w.x + size_t{r} * shape_.hidden);
    meet(w, times_.embed);
    return true;
  }
  return talk(w, [&] {
    std::span<float> rows(w.x, size_t{w.rows} * shape_.hidden);
    uint32_t from = (part_.stage - 1) * part_.tensor_size + part_.tensor_rank;
    return world_.recv(std::as_writable_bytes(rows), from);
  });
}

bool stage::leave(walk& w) {
  range mine = share(w, w.rows);
  for (uint32_t r = mine.begin; r < mine.end; ++r) add_pending(w, r);
  meet(w, times_.norm);
  return talk(w, [&] {
    std::span<const float> rows(w.x, size_t{w.rows} * shape_.hidden);
    uint32_t to = (part_.stage + 1) * part_.tensor_size + part_.tensor_rank;
    return world_.send(std::as_bytes(rows), to);
  });
}

/// Cosines and sines of this thread's tokens: once per step, for all layers and heads.
void stage::turn_tables(const walk& w) {
  range mine = share(w, w.rows);
  size_t pairs = frequencies_.size();
  for (const query_run& run : queries_.all) {
    uint32_t begin = std::max(mine.begin, run.query_row);
    uint32_t end = std::min(mine.end, run.query_row + run.tokens);
    for (uint32_t r = begin; r < end; ++r)
      for (size_t i = 0; i < pairs; ++i) {
        double angle = double(run.position + (r - run.query_row)) * frequencies_[i];
        b_.cosines[r * pairs + i] = float(std::cos(angle) * magnitude_);
        b_.sines[r * pairs + i] = float(std::sin(angle) * magnitude_);
      }
  }
}

/// x += what the last operation left; y = norm(x); and in the forms that weights want.
/// Row by row, which stays in the first cache; so a thread needs nobody in between.
void stage::norm(walk& w, const float* gain, x_forms forms) {
  range mine = share(w, w.rows);
  size_t cols = shape_.hidden;
  for (uint32_t r = mine.begin; r < mine.end; ++r) {
    size_t begin = r * cols;
    add_pending(w, r);
    row_.rms_norm(w.x + begin, cols, gain, b_.normed + begin, cols, 1, shape_.hidden,
                  shape_.norm_eps);
    make_forms(w, forms, b_.normed, shape_.hidden, begin, begin + cols);
  }
  meet(w, times_.norm);
  w.pending = nullptr;
}

/// Elements that stay in the first cache until other forms of them are made.
constexpr size_t activation_slice = 2048;

bool stage::feed_forward(walk& w, const mlp_weights& l) {
  norm(w, l.norm, forms_for({&l.gate, &l.up}));
  uint32_t cols = part_.ffn.size();
  range all{0, segments};
  float* gate = room_for(w, l.down, b_.gate);
  product products[] = {{&l.gate, part_.ffn, all, l.gate_bias, gate, cols},
                        {&l.up, part_.ffn, all, l.up_bias, b_.up, cols}};
  multiply(w, products, input(w.rows, b_.normed, shape_.hidden));
  meet(w, times_.gate_up);

  size_t elements = size_t{w.rows} * cols;
  range blocks = share(w, uint32_t((elements + 31) / 32));
  size_t begin = size_t{blocks.begin} * 32, end = std::min(elements, size_t{blocks.end} * 32);
  x_forms forms = along_k(l.down) ? forms_for({&l.down}) : x_forms{};
  for (size_t next; begin < end; begin = next) {
    next = std::min(end, begin + activation_slice);
    row_.silu_multiply(gate + begin, b_.up + begin, gate + begin, next - begin);
    make_forms(w, forms, gate, cols, begin, next);
  }
  meet(w, times_.gate_up);
  return join(w, l.down, l.down_bias, gate, times_.down);
}

void stage::multiply(walk& w, std::span<const product> products, const activations& x) {
  uint32_t threads = team_.size() * uint32_t(1 + beside_.size());
  panels_.multiply(w.multiplied, {row_, products, x}, threads, beside_);
}

activations stage::input(uint32_t rows, const float* x, size_t stride) const {
  return {.rows = rows, .f = x, .stride = stride, .units = b_.units, .rounded = b_.rounded};
}

stage::x_forms stage::forms_for(std::initializer_list<const matrix*> weights) const {
  x_forms forms;
  for (const matrix* m : weights) {
    if (!is_float(m->type)) forms.units = true;
    if (takes_rounded(row_, *m)) forms.rounded = true;
  }
  return forms;
}

void stage::make_forms(const walk& w, x_forms forms, const float* x, uint32_t cols, size_t begin,
                       size_t end) {
  if (forms.units) row_.quantize(x, w.rows, cols, begin, end, b_.units);
  if (forms.rounded) row_.round(x, w.rows, cols, begin, end, b_.rounded);
}

}  // namespace lethe

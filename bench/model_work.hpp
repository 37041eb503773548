#pragma once

#include "kernels/cpu_row.hpp"
#include "parallel/weights.hpp"

namespace lethe::bench {

/// What a model's arithmetic needs at least, whoever does it: what limits are computed from.
struct model_work {
  double int8_ops = 0, float_ops = 0;  // multiplications and additions with weights, by their kind
  double attention_ops = 0;            // the same with keys and values
};

/// Bytes of a weight as its file has them: a roomier layout in memory is no excuse.
inline double file_bytes(const matrix& m) {
  return double(m.rows) * m.cols / block_elements(m.type) * block_bytes(m.type);
}

/// Of all that one token reads: every matrix once (of the embedding, if it isn't the head, too,
/// it takes one row, which is nothing) and the norms.
inline double weight_bytes(const model_weights& w) {
  double all = file_bytes(w.head);
  for (const auto& l : w.layers) {
    const auto& a = l.attention;
    for (const matrix* m : {&a.q, &a.k, &a.v, &a.o, &l.mlp.gate, &l.mlp.up, &l.mlp.down})
      all += file_bytes(*m);
    all += 2.0 * w.shape.hidden * sizeof(float);
  }
  return all;
}

/// Key and value bytes of one token, in all layers.
inline double kv_token_bytes(const model_shape& s, kv_type type) {
  return 2.0 * s.layers * s.kv_heads * kv_row_bytes(type, s.head_dim);
}

inline void add_product(model_work& to, const matrix& m, double rows) {
  (is_float(m.type) ? to.float_ops : to.int8_ops) += 2.0 * m.rows * m.cols * rows;
}

/// Work with weights of `rows` tokens of which `answers` become logits: behind the last layer's
/// keys and values only those are needed.
inline model_work work_of(const model_weights& w, double rows, double answers) {
  model_work all;
  for (size_t i = 0; i < w.layers.size(); ++i) {
    const auto& l = w.layers[i];
    const auto& a = l.attention;
    for (const matrix* m : {&a.q, &a.k, &a.v}) add_product(all, *m, rows);
    double onward = i + 1 == w.layers.size() ? answers : rows;
    for (const matrix* m : {&a.o, &l.mlp.gate, &l.mlp.up, &l.mlp.down})
      add_product(all, *m, onward);
  }
  add_product(all, w.head, answers);
  return all;
}

/// A query meets `seen` keys in each of `layers`: a product with the keys, one with the values.
inline double attention_ops(const model_shape& s, double seen, double layers) {
  return 4.0 * s.heads * s.head_dim * seen * layers;
}

}  // namespace lethe::bench

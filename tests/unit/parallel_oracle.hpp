#pragma once

#include "tests/unit/parallel_random_model.hpp"

namespace lethe::testing {

using numbers = std::vector<double>;

/// The same transformer, once more: whole sequences, double precision, no cuts, no pages, no
/// kernels. Written from the definitions.
class oracle {
 public:
  explicit oracle(const random_model& m) : model_(m), shape_(m.weights.shape) {}

  /// Logits after every token: [tokens][vocab].
  std::vector<numbers> logits(const std::vector<uint32_t>& ids) const {
    std::vector<numbers> x;
    const auto& embed = model_.plain(model_.weights.embed);
    for (uint32_t id : ids)
      x.emplace_back(embed.begin() + size_t{id} * shape_.hidden,
                     embed.begin() + (size_t{id} + 1) * shape_.hidden);
    for (uint32_t i = 0; i < shape_.layers; ++i) {
      attend(x, i);
      for (numbers& row : x) feed(row, model_.weights.layers[i].mlp);
    }
    std::vector<numbers> all;
    for (const numbers& row : x)
      all.push_back(times(model_.weights.head, normed(row, model_.weights.norm), nullptr));
    return all;
  }

 private:
  numbers times(const matrix& m, const numbers& x, const float* bias) const {
    const auto& w = model_.plain(m);
    numbers y(m.rows);
    for (size_t r = 0; r < m.rows; ++r) {
      for (size_t c = 0; c < m.cols; ++c) y[r] += double(w[r * m.cols + c]) * x[c];
      if (bias) y[r] += double(bias[r]);
    }
    return y;
  }

  numbers normed(const numbers& x, const float* gain) const {
    double sum = 0;
    for (double v : x) sum += v * v;
    double scale = 1 / std::sqrt(sum / double(x.size()) + double(shape_.norm_eps));
    numbers y;
    for (size_t i = 0; i < x.size(); ++i) y.push_back(x[i] * scale * double(gain[i]));
    return y;
  }

  numbers head_of(const numbers& all, uint32_t h) const {
    return {all.begin() + h * shape_.head_dim, all.begin() + (h + 1) * shape_.head_dim};
  }

  void turn(numbers& head, size_t position) const {
    std::vector<double> f = rope_frequencies(shape_.rope);
    double m = rope_magnitude(shape_.rope);
    for (size_t i = 0; i < f.size(); ++i) {
      double c = std::cos(double(position) * f[i]) * m, s = std::sin(double(position) * f[i]) * m;
      double a = head[i], b = head[i + f.size()];
      head[i] = a * c - b * s;
      head[i + f.size()] = b * c + a * s;
    }
  }

  void attend(std::vector<numbers>& x, uint32_t layer) const {
    const attention_weights& w = model_.weights.layers[layer].attention;
    uint32_t window = shape_.window.empty() ? 0 : shape_.window[layer];
    std::vector<std::vector<numbers>> keys, values;  // [token][kv head]
    for (size_t t = 0; t < x.size(); ++t) {
      numbers in = normed(x[t], w.norm);
      numbers q = times(w.q, in, w.q_bias), k = times(w.k, in, w.k_bias);
      numbers v = times(w.v, in, w.v_bias);
      keys.emplace_back(), values.emplace_back();
      for (uint32_t h = 0; h < shape_.kv_heads; ++h) {
        numbers key = head_of(k, h);
        if (w.k_norm) key = normed(key, w.k_norm);
        turn(key, t);
        keys[t].push_back(key), values[t].push_back(head_of(v, h));
      }
      size_t first = window != 0 && t + 1 > window ? t + 1 - window : 0;
      numbers out;
      for (uint32_t h = 0; h < shape_.heads; ++h) {
        numbers query = head_of(q, h);
        if (w.q_norm) query = normed(query, w.q_norm);
        turn(query, t);
        uint32_t kv = h / (shape_.heads / shape_.kv_heads);
        numbers seen = look(query, keys, values, kv, first, t);
        out.insert(out.end(), seen.begin(), seen.end());
      }
      numbers y = times(w.o, out, w.o_bias);
      for (size_t i = 0; i < y.size(); ++i) x[t][i] += y[i];
    }
  }

  numbers look(const numbers& query, const std::vector<std::vector<numbers>>& keys,
               const std::vector<std::vector<numbers>>& values, uint32_t kv, size_t first,
               size_t last) const {
    numbers scores, out(shape_.head_dim);
    double top = -1e300, sum = 0;
    for (size_t j = first; j <= last; ++j) {
      double dot = 0;
      for (size_t i = 0; i < query.size(); ++i) dot += query[i] * keys[j][kv][i];
      scores.push_back(dot / std::sqrt(double(shape_.head_dim)));
      top = std::max(top, scores.back());
    }
    for (double& s : scores) sum += s = std::exp(s - top);
    for (size_t j = first; j <= last; ++j)
      for (size_t i = 0; i < out.size(); ++i) out[i] += scores[j - first] / sum * values[j][kv][i];
    return out;
  }

  void feed(numbers& x, const mlp_weights& w) const {
    numbers in = normed(x, w.norm);
    numbers gate = times(w.gate, in, w.gate_bias), up = times(w.up, in, w.up_bias);
    for (size_t i = 0; i < gate.size(); ++i) gate[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
    numbers y = times(w.down, gate, w.down_bias);
    for (size_t i = 0; i < y.size(); ++i) x[i] += y[i];
  }

  const random_model& model_;
  const model_shape& shape_;
};

}  // namespace lethe::testing

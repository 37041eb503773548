#pragma once

// A slow transformer in double precision, written from the definitions: no kernel, no panel, no
// page, no code shared with the engine. What it says is what the engine must say, within rounding.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <numbers>
#include <set>
#include <string>
#include <vector>

namespace oracle {

using row = std::vector<double>;
using rows = std::vector<row>;

struct rope_rule {
  double theta = 10000;
  std::string type;  // "", linear, llama3, yarn
  double factor = 1, original_context = 0;
  double low_freq_factor = 1, high_freq_factor = 4;
  double beta_fast = 32, beta_slow = 1, attention_factor = 0;
};

struct model {
  uint32_t layers, hidden, heads, kv_heads, head_dim, ffn, vocab;
  double eps = 1e-5;
  rope_rule rope;
  uint32_t window = 0, window_from_layer = 0;
  std::map<std::string, row> tensors;  // Hugging Face names without "model.", row-major
  std::set<std::string> eight_bit;     // matrices of blocks: their activations have eight bits

  bool has(const std::string& name) const { return tensors.count(name) > 0; }
  const row& at(const std::string& name) const { return tensors.at(name); }
};

/// Each block of 32 in whole steps of a 127th of its largest.
inline row in_eight_bits(row x) {
  for (size_t first = 0; first < x.size(); first += 32) {
    double most = 0;
    for (size_t i = first; i < first + 32; ++i) most = std::max(most, std::fabs(x[i]));
    for (size_t i = first; i < first + 32; ++i)
      x[i] = most > 0 ? std::nearbyint(x[i] * 127 / most) * most / 127 : 0;
  }
  return x;
}

/// y[o] = sum_i w[o][i] x[i] + bias[o]
inline row linear(const model& m, const std::string& name, const row& given) {
  const row& w = m.at(name + ".weight");
  const row x = m.eight_bit.count(name + ".weight") ? in_eight_bits(given) : given;
  row y(w.size() / x.size());
  for (size_t o = 0; o < y.size(); ++o)
    for (size_t i = 0; i < x.size(); ++i) y[o] += w[o * x.size() + i] * x[i];
  if (m.has(name + ".bias"))
    for (size_t o = 0; o < y.size(); ++o) y[o] += m.at(name + ".bias")[o];
  return y;
}

inline row rms_norm(const row& x, const double* gain, double eps) {
  double sum = 0;
  for (double v : x) sum += v * v;
  double scale = 1 / std::sqrt(sum / double(x.size()) + eps);
  row y(x.size());
  for (size_t i = 0; i < x.size(); ++i) y[i] = x[i] * scale * gain[i];
  return y;
}

/// Radians per position of pair i, and what cosine and sine are multiplied with.
inline std::pair<double, double> rotation(const rope_rule& r, uint32_t head_dim, uint32_t i) {
  double base = std::pow(r.theta, -2.0 * i / head_dim);
  const double tau = 2 * std::numbers::pi;
  if (r.type == "linear") return {base / r.factor, 1};
  if (r.type == "llama3") {
    double wave = tau / base;
    if (wave > r.original_context / r.low_freq_factor) return {base / r.factor, 1};
    if (wave < r.original_context / r.high_freq_factor) return {base, 1};
    double smooth =
        (r.original_context / wave - r.low_freq_factor) / (r.high_freq_factor - r.low_freq_factor);
    return {(1 - smooth) * base / r.factor + smooth * base, 1};
  }
  if (r.type == "yarn") {
    auto dimension = [&](double turns) {
      return head_dim * std::log(r.original_context / (turns * tau)) / (2 * std::log(r.theta));
    };
    double low = std::max(std::floor(dimension(r.beta_fast)), 0.0);
    double high = std::min(std::ceil(dimension(r.beta_slow)), double(head_dim - 1));
    if (low == high) high += 0.001;
    double ramp = std::clamp((i - low) / (high - low), 0.0, 1.0);
    double magnitude = r.attention_factor > 0 ? r.attention_factor
                       : r.factor <= 1        ? 1
                                              : 0.1 * std::log(r.factor) + 1;
    return {base / r.factor * ramp + base * (1 - ramp), magnitude};
  }
  return {base, 1};
}

inline void rotate(const model& m, double* head, uint32_t position) {
  uint32_t half = m.head_dim / 2;
  for (uint32_t i = 0; i < half; ++i) {
    auto [speed, magnitude] = rotation(m.rope, m.head_dim, i);
    double c = std::cos(position * speed) * magnitude, s = std::sin(position * speed) * magnitude;
    double a = head[i], b = head[i + half];
    head[i] = a * c - b * s;
    head[i + half] = b * c + a * s;
  }
}

inline void norm_heads(const model& m, const std::string& name, row& x) {
  if (!m.has(name)) return;
  for (size_t h = 0; h < x.size(); h += m.head_dim) {
    row head(x.begin() + h, x.begin() + h + m.head_dim);
    head = rms_norm(head, m.at(name).data(), m.eps);
    std::copy(head.begin(), head.end(), x.begin() + h);
  }
}

inline rows attention(const model& m, const std::string& layer, uint32_t index, const rows& x) {
  rows q, k, v, out;
  for (uint32_t t = 0; t < x.size(); ++t) {
    q.push_back(linear(m, layer + "self_attn.q_proj", x[t]));
    k.push_back(linear(m, layer + "self_attn.k_proj", x[t]));
    v.push_back(linear(m, layer + "self_attn.v_proj", x[t]));
    norm_heads(m, layer + "self_attn.q_norm.weight", q[t]);
    norm_heads(m, layer + "self_attn.k_norm.weight", k[t]);
    for (uint32_t h = 0; h < m.heads; ++h) rotate(m, q[t].data() + h * m.head_dim, t);
    for (uint32_t h = 0; h < m.kv_heads; ++h) rotate(m, k[t].data() + h * m.head_dim, t);
  }
  uint32_t window = index >= m.window_from_layer ? m.window : 0;
  for (uint32_t t = 0; t < x.size(); ++t) {
    row mixed(size_t{m.heads} * m.head_dim);
    uint32_t first = window && t + 1 > window ? t + 1 - window : 0;
    for (uint32_t h = 0; h < m.heads; ++h) {
      uint32_t kv = h / (m.heads / m.kv_heads);
      row score(t + 1 - first);
      double most = -std::numeric_limits<double>::infinity(), sum = 0;
      for (uint32_t j = first; j <= t; ++j) {
        double dot = 0;
        for (uint32_t d = 0; d < m.head_dim; ++d)
          dot += q[t][h * m.head_dim + d] * k[j][kv * m.head_dim + d];
        score[j - first] = dot / std::sqrt(double(m.head_dim));
        most = std::max(most, score[j - first]);
      }
      for (double& s : score) sum += s = std::exp(s - most);
      for (uint32_t j = first; j <= t; ++j)
        for (uint32_t d = 0; d < m.head_dim; ++d)
          mixed[h * m.head_dim + d] += score[j - first] / sum * v[j][kv * m.head_dim + d];
    }
    out.push_back(linear(m, layer + "self_attn.o_proj", mixed));
  }
  return out;
}

inline row feed_forward(const model& m, const std::string& layer, const row& x) {
  row gate = linear(m, layer + "mlp.gate_proj", x), up = linear(m, layer + "mlp.up_proj", x);
  for (size_t i = 0; i < gate.size(); ++i) gate[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
  return linear(m, layer + "mlp.down_proj", gate);
}

/// Logits of every position.
inline rows logits(const model& m, const std::vector<uint32_t>& ids) {
  rows x;
  for (uint32_t id : ids) {
    auto at = m.at("embed_tokens.weight").begin() + size_t{id} * m.hidden;
    x.emplace_back(at, at + m.hidden);
  }
  auto add = [](row& to, const row& what) {
    for (size_t i = 0; i < to.size(); ++i) to[i] += what[i];
  };
  for (uint32_t l = 0; l < m.layers; ++l) {
    std::string layer = "layers." + std::to_string(l) + ".";
    rows normed;
    for (const row& r : x)
      normed.push_back(rms_norm(r, m.at(layer + "input_layernorm.weight").data(), m.eps));
    rows mixed = attention(m, layer, l, normed);
    for (size_t t = 0; t < x.size(); ++t) {
      add(x[t], mixed[t]);
      const row& gain = m.at(layer + "post_attention_layernorm.weight");
      add(x[t], feed_forward(m, layer, rms_norm(x[t], gain.data(), m.eps)));
    }
  }
  rows out;
  for (const row& r : x) {
    row last = rms_norm(r, m.at("norm.weight").data(), m.eps);
    out.push_back(linear(m, m.has("lm_head.weight") ? "lm_head" : "embed_tokens", last));
  }
  return out;
}

}  // namespace oracle

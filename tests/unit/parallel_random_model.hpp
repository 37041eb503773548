#pragma once

#include <cmath>
#include <cstring>
#include <memory>
#include <random>

#include "parallel/weights.hpp"

namespace lethe::testing {

/// A small model with random weights, as panels for the shards and as plain numbers for the oracle.
class random_model {
 public:
  struct types {
    dtype attention = dtype::f32, mlp = dtype::f32, vocabulary = dtype::f32;
  };

  random_model(const model_shape& shape, types t, uint32_t seed = 1) : random_(seed) {
    weights.shape = shape;
    uint32_t d = shape.head_dim, q = shape.heads * d, kv = shape.kv_heads * d;
    weights.embed = make(t.vocabulary, shape.vocab, shape.hidden, 1.0f);
    for (uint32_t i = 0; i < shape.layers; ++i) {
      layer_weights l{};
      attention_weights& a = l.attention;
      a.norm = gains(shape.hidden);
      a.q = make(t.attention, q, shape.hidden);
      a.k = make(t.attention, kv, shape.hidden);
      a.v = make(t.attention, kv, shape.hidden);
      a.o = make(t.attention, shape.hidden, q);
      if (shape.qkv_bias) a.q_bias = biases(q), a.k_bias = biases(kv), a.v_bias = biases(kv);
      if (shape.o_bias) a.o_bias = biases(shape.hidden);
      if (shape.qk_norm) a.q_norm = gains(d), a.k_norm = gains(d);
      mlp_weights& m = l.mlp;
      m.norm = gains(shape.hidden);
      m.gate = make(t.mlp, shape.ffn, shape.hidden);
      m.up = make(t.mlp, shape.ffn, shape.hidden);
      m.down = make(t.mlp, shape.hidden, shape.ffn);
      if (shape.mlp_bias)
        m.gate_bias = biases(shape.ffn), m.up_bias = biases(shape.ffn),
        m.down_bias = biases(shape.hidden);
      weights.layers.push_back(l);
    }
    weights.norm = gains(shape.hidden);
    weights.head = shape.tied ? weights.embed : make(t.vocabulary, shape.vocab, shape.hidden);
  }

  /// The numbers of a matrix as the file means them, row after row.
  const std::vector<float>& plain(const matrix& m) const {
    for (const auto& s : stored_)
      if (s->panels() == m.panels) return s->plain;
    std::abort();
  }

  model_weights weights;

 private:
  struct stored {
    std::vector<float> plain;
    std::vector<std::byte> memory;
    std::byte* panels() {
      auto at = reinterpret_cast<uintptr_t>(memory.data());
      return memory.data() + ((at + 63) / 64 * 64 - at);
    }
  };

  float uniform() { return std::uniform_real_distribution<float>(-1, 1)(random_); }

  /// One row as a file holds it; `plain` gets what it means.
  void put_row(dtype t, uint32_t cols, float size, std::byte* to, float* plain) {
    for (uint32_t i = 0; i < cols; ++i) plain[i] = uniform() * size;
    if (t == dtype::f32) std::memcpy(to, plain, cols * 4);
    if (t == dtype::bf16)
      for (uint32_t i = 0; i < cols; ++i) {
        uint32_t bits;
        std::memcpy(&bits, &plain[i], 4);
        auto half = uint16_t(bits >> 16);
        std::memcpy(to + i * 2, &half, 2);
        bits &= 0xffff0000;
        std::memcpy(&plain[i], &bits, 4);
      }
    if (t == dtype::q8_0) put_q8_0(cols, size, to, plain);
  }

  /// Scales are powers of two: an f16 of no mantissa.
  void put_q8_0(uint32_t cols, float size, std::byte* to, float* plain) {
    for (uint32_t b = 0; b < cols / 32; ++b) {
      int exponent = int(std::floor(std::log2(size))) - 7 + int(random_() % 2);
      auto scale = uint16_t((exponent + 15) << 10);
      std::memcpy(to + b * 34, &scale, 2);
      for (uint32_t i = 0; i < 32; ++i) {
        auto q = int8_t(int(random_() % 255) - 127);
        std::memcpy(to + b * 34 + 2 + i, &q, 1);
        plain[b * 32 + i] = std::ldexp(float(q), exponent);
      }
    }
  }

  matrix make(dtype t, uint32_t rows, uint32_t cols, float size = 0) {
    if (size == 0) size = 1.7f / std::sqrt(float(cols));
    auto s = std::make_unique<stored>();
    s->plain.resize(size_t{rows} * cols);
    size_t row_bytes = size_t{cols} / block_elements(t) * block_bytes(t);
    std::vector<std::byte> file(rows * row_bytes);
    for (uint32_t r = 0; r < rows; ++r)
      put_row(t, cols, size, file.data() + r * row_bytes, s->plain.data() + size_t{r} * cols);
    s->memory.resize(matrix_bytes(t, rows, cols) + 64);
    struct context {
      const std::byte* file;
      size_t row_bytes;
    } where{file.data(), row_bytes};
    repack_panels(
        t, rows, cols, 0, (rows + panel_rows - 1) / panel_rows,
        [](const void* c, uint32_t r) {
          auto* w = static_cast<const context*>(c);
          return w->file + r * w->row_bytes;
        },
        &where, s->panels());
    matrix m{t, rows, cols, s->panels()};
    stored_.push_back(std::move(s));
    return m;
  }

  const float* vector(uint32_t n, float middle, float size) {
    vectors_.push_back(std::make_unique<float[]>(n + 16));
    auto at = reinterpret_cast<uintptr_t>(vectors_.back().get());
    float* v = reinterpret_cast<float*>((at + 63) / 64 * 64);
    for (uint32_t i = 0; i < n; ++i) v[i] = middle + uniform() * size;
    return v;
  }
  const float* gains(uint32_t n) { return vector(n, 1, 0.2f); }
  const float* biases(uint32_t n) { return vector(n, 0, 0.3f); }

  std::mt19937 random_;
  std::vector<std::unique_ptr<stored>> stored_;
  std::vector<std::unique_ptr<float[]>> vectors_;
};

}  // namespace lethe::testing

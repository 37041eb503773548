#include "runtime/model/quantize_k.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/model/quantize.hpp"

namespace lethe {

namespace {

/// x is about scale * q - min, with 0 <= q <= levels and min >= 0.
struct affine {
  float scale = 0, min = 0;
};

/// Least squares for given levels q: sums over x and q with weights.
struct affine_sums {
  double w = 0, x = 0, q = 0, qq = 0, xq = 0;

  void add(float weight, float value, int level) {
    w += weight;
    x += double(weight) * value;
    q += double(weight) * level;
    qq += double(weight) * level * level;
    xq += double(weight) * value * level;
  }
  affine solve() const {
    double det = w * qq - q * q;
    if (det <= 0) return {};
    double scale = (w * xq - q * x) / det, min = (q * xq - qq * x) / det;
    if (min < 0) {
      min = 0;
      scale = qq > 0 ? xq / qq : 0;
    }
    return {float(scale), float(min)};
  }
};

double affine_error(const float* x, const float* weights, int n, int levels, affine fit) {
  double sum = 0;
  float inverse = fit.scale > 0 ? 1 / fit.scale : 0;
  for (int i = 0; i < n; ++i) {
    int q = nearest((x[i] + fit.min) * inverse, 0, levels);
    double off = double(fit.scale) * q - fit.min - x[i];
    sum += weights[i] * off * off;
  }
  return sum;
}

affine fit_affine(const float* x, const float* weights, int n, int levels) {
  auto [low, high] = std::minmax_element(x, x + n);
  float least = std::min(*low, 0.0f), range = *high - least;
  if (!(range > 0) || !std::isfinite(range)) return {0, -least};
  affine best{range / float(levels), -least};
  double best_error = affine_error(x, weights, n, levels, best);
  // Ranges a little smaller and larger than the extremes' own, each followed by least squares.
  for (int step = -6; step <= 12; step += 2) {
    float inverse = (float(levels) + 0.1f * float(step)) / range;
    affine_sums sums;
    for (int i = 0; i < n; ++i)
      sums.add(weights[i], x[i], nearest((x[i] - least) * inverse, 0, levels));
    affine fit = sums.solve();
    if (!(fit.scale > 0)) continue;
    double off = affine_error(x, weights, n, levels, fit);
    if (off < best_error) best = fit, best_error = off;
  }
  return best;
}

/// x is about scale * q, -32 <= q <= 31; the scale may be negative.
float fit_symmetric(const float* x, int n) {
  float extreme = 0;
  for (int i = 0; i < n; ++i)
    if (std::fabs(x[i]) > std::fabs(extreme)) extreme = x[i];
  if (std::fabs(extreme) < 1e-30f || !std::isfinite(extreme)) return 0;
  float best = 0;
  double best_gain = -1;
  for (int step = -8; step <= 8; ++step) {
    float inverse = -(32 + 0.1f * float(step)) / extreme;
    double xq = 0, qq = 0;
    for (int i = 0; i < n; ++i) {
      int q = nearest(x[i] * inverse, -32, 31);
      double weight = double(x[i]) * x[i];
      xq += weight * x[i] * q;
      qq += weight * q * q;
    }
    // What least squares leaves of the error is sum(w x^2) - xq^2 / qq.
    if (qq > 0 && xq * xq / qq > best_gain) best_gain = xq * xq / qq, best = float(xq / qq);
  }
  return best;
}

struct k_fit {
  uint16_t d, m;
  k_scales scales;
  uint8_t q[256];
};

k_fit fit_k(const float* x, int levels) {
  k_fit made{};
  affine fits[8];
  float scale_max = 0, min_max = 0;
  for (int j = 0; j < 8; ++j) {
    float weights[32], square = 0;
    for (int i = 0; i < 32; ++i) square += x[32 * j + i] * x[32 * j + i];
    float typical = std::sqrt(square / 32);
    for (int i = 0; i < 32; ++i) weights[i] = typical + std::fabs(x[32 * j + i]);
    fits[j] = fit_affine(x + 32 * j, weights, 32, levels);
    scale_max = std::max(scale_max, fits[j].scale);
    min_max = std::max(min_max, fits[j].min);
  }
  made.d = f16_of(scale_max / 63);
  made.m = f16_of(min_max / 63);
  float d = f32_of_f16(made.d), m = f32_of_f16(made.m);
  for (int j = 0; j < 8; ++j) {
    made.scales.scale[j] = uint8_t(d > 0 ? nearest(fits[j].scale / d, 0, 63) : 0);
    made.scales.min[j] = uint8_t(m > 0 ? nearest(fits[j].min / m, 0, 63) : 0);
    float scale = d * float(made.scales.scale[j]), min = m * float(made.scales.min[j]);
    for (int i = 32 * j; i < 32 * j + 32; ++i)
      made.q[i] = uint8_t(scale > 0 ? nearest((x[i] + min) / scale, 0, levels) : 0);
  }
  return made;
}

template <class Block>
void put_common(const k_fit& fit, Block& block) {
  block.d = fit.d;
  block.m = fit.m;
  pack(fit.scales, block.scales);
  for (int j = 0; j < 8; j += 2)
    for (int i = 0; i < 32; ++i)
      block.q[16 * j + i] = uint8_t((fit.q[32 * j + i] & 15) | (fit.q[32 * (j + 1) + i] & 15) << 4);
}

}  // namespace

void write_block(const float* x, q4_k_block& block) { put_common(fit_k(x, 15), block); }

void write_block(const float* x, q5_k_block& block) {
  block = {};
  k_fit fit = fit_k(x, 31);
  put_common(fit, block);
  for (int i = 0; i < 256; ++i) block.high[i % 32] |= uint8_t((fit.q[i] >> 4) << i / 32);
}

void write_block(const float* x, q6_k_block& block) {
  block = {};
  float scales[16], extreme = 0;
  for (int j = 0; j < 16; ++j) {
    scales[j] = fit_symmetric(x + 16 * j, 16);
    if (std::fabs(scales[j]) > std::fabs(extreme)) extreme = scales[j];
  }
  block.d = f16_of(extreme / -128);
  float d = f32_of_f16(block.d);
  if (d == 0) return;  // q = 0 with scale 0 is 0
  for (int j = 0; j < 16; ++j) block.scales[j] = int8_t(nearest(scales[j] / d, -128, 127));
  for (int i = 0; i < 256; ++i) {
    float scale = d * float(block.scales[i / 16]);
    int q = scale == 0 ? 32 : nearest(x[i] / scale, -32, 31) + 32;
    int half = i / 128, part = i % 128 / 32, at = i % 32;
    block.low[64 * half + part % 2 * 32 + at] |= uint8_t((q & 15) << (part < 2 ? 0 : 4));
    block.high[32 * half + at] |= uint8_t((q >> 4) << 2 * part);
  }
}

}  // namespace lethe

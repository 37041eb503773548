// The training's arithmetic that PyTorch would do in many passes over memory: each function is one
// pass there, or one back. Products of large matrices stay with the BLAS. fused.py builds this.
// Matrices are dense rows of floats; every width is a multiple of `lanes`.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

constexpr int64_t lanes = 16;
constexpr int64_t head = 32;   // floats of a head
constexpr int64_t block = 32;  // queries that are done together; keys are padded to it
constexpr int64_t strip = 8;   // rows of a product that fit the registers

typedef float lane __attribute__((vector_size(4 * lanes)));
typedef int32_t whole __attribute__((vector_size(4 * lanes)));

lane load(const float* from) {
  lane v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

void store(float* to, lane v) { std::memcpy(to, &v, sizeof v); }

float sum(lane v) {
  float all = 0;
  for (int64_t i = 0; i < lanes; ++i) all += v[i];
  return all;
}

float largest(lane v) {
  float most = v[0];
  for (int64_t i = 1; i < lanes; ++i) most = v[i] > most ? v[i] : most;
  return most;
}

/// e^x to about 2e-7 of its value; 0 below -87.
lane exponential(lane x) {
  const lane wide = x * 1.44269504f;
  constexpr float shift = 12582912.0f;  // 1.5 * 2^23: adding it rounds to a whole number
  const lane n = (wide + shift) - shift;
  const lane f = (x - n * 0.693359375f) + n * 2.12194440e-4f;  // x - n ln 2, in two parts
  lane p = f * 1.3981999e-3f + 8.3334519e-3f;
  p = p * f + 4.1665795e-2f;
  p = p * f + 1.6666665e-1f;
  p = p * f + 0.5f;
  p = p * f * f + f + 1.0f;
  const whole exponent = (__builtin_convertvector(n, whole) + 127) << 23;
  lane power;
  std::memcpy(&power, &exponent, sizeof power);
  return x < -87.0f ? lane{} : p * power;
}

/// out[m][32] (+)= a * b[k][32], where a[r][p] is at a[r * row + p * column]; m is a multiple of 8.
void product(float* out, int64_t out_row, const float* a, int64_t row, int64_t column,
             const float* b, int64_t b_row, int64_t m, int64_t k, bool add) {
  for (int64_t r0 = 0; r0 < m; r0 += strip, out += strip * out_row, a += strip * row) {
    lane left[strip] = {}, right[strip] = {};
    for (int64_t p = 0; p < k; ++p) {
      const lane b0 = load(b + p * b_row), b1 = load(b + p * b_row + lanes);
#pragma GCC unroll 8
      for (int64_t r = 0; r < strip; ++r) {
        const float x = a[r * row + p * column];
        left[r] += x * b0;
        right[r] += x * b1;
      }
    }
    for (int64_t r = 0; r < strip; ++r) {
      float* to = out + r * out_row;
      store(to, add ? load(to) + left[r] : left[r]);
      store(to + lanes, add ? load(to + lanes) + right[r] : right[r]);
    }
  }
}

/// Turns a head by its position's angles, forwards or back, and scales it.
void turn(const float* from, const float* cosine, const float* sine, float scale, bool back,
          float* to) {
  const lane a = load(from), b = load(from + lanes);
  const lane c = load(cosine) * scale, s = load(sine) * (back ? -scale : scale);
  store(to, a * c - b * s);
  store(to + lanes, b * c + a * s);
}

void transpose(const float* from, int64_t rows, float* to, int64_t to_row) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < head; ++c) to[c * to_row + r] = from[r * head + c];
}

/// Which heads there are, and where a token's are: queries, then keys, then values.
struct form {
  int64_t heads, kv_heads;
  const float *cosine, *sine;  // of each position, `head / 2` each
  int64_t row() const { return (heads + 2 * kv_heads) * head; }
  int64_t group() const { return heads / kv_heads; }
  float scale() const { return 1 / std::sqrt(float(head)); }
};

/// One text's one head of keys and values, with room for a block of queries against all of it.
struct scratch {
  int64_t tokens = 0, padded = 0;
  std::vector<float> keys, keys_across, values, values_across, scores, slopes, d_keys, d_values;
  float query[block * head], upper[block * head], lower[block * head];

  void read(const form& f, const float* qkv, int64_t kv, int64_t count) {
    tokens = count;
    padded = (count + block - 1) / block * block;
    for (auto* all : {&keys, &keys_across, &values, &values_across, &d_keys, &d_values})
      all->assign(padded * head, 0);
    scores.resize(block * padded);
    slopes.resize(block * padded);
    for (int64_t i = 0; i < tokens; ++i) {
      const float* key = qkv + i * f.row() + (f.heads + kv) * head;
      turn(key, f.cosine + i * lanes, f.sine + i * lanes, 1, false, &keys[i * head]);
      std::memcpy(&values[i * head], key + f.kv_heads * head, head * sizeof(float));
    }
    transpose(keys.data(), tokens, keys_across.data(), padded);
  }

  /// Scores of the queries from `first` on, for the keys that the last of them sees.
  void score(const form& f, const float* qkv, int64_t h, int64_t first, int64_t count) {
    std::memset(query, 0, sizeof query);
    for (int64_t i = 0; i < count; ++i)
      turn(qkv + (first + i) * f.row() + h * head, f.cosine + (first + i) * lanes,
           f.sine + (first + i) * lanes, f.scale(), false, query + i * head);
    for (int64_t j = 0; j < first + block; j += block)
      product(&scores[j], padded, query, head, 1, &keys_across[j], padded, block, head, false);
  }
};

/// e^(score - top) for the keys up to `last`, 0 for those after it up to `width`; gives the sum.
float weigh(float* row, int64_t last, int64_t width, float top) {
  lane all = {};
  int64_t j = 0;
  for (; j + lanes <= last + 1; j += lanes) {
    const lane e = exponential(load(row + j) - top);
    store(row + j, e);
    all += e;
  }
  for (const int64_t part = j; j < width; j += lanes) {
    lane e = exponential(load(row + j) - top);
    for (int64_t i = 0; i < lanes; ++i) e[i] = j > part || j + i > last ? 0 : e[i];
    store(row + j, e);
    all += e;
  }
  return sum(all);
}

float top_of(const float* row, int64_t count) {
  lane most = lane{} - 3e38f;
  int64_t j = 0;
  for (; j + lanes <= count; j += lanes) most = load(row + j) > most ? load(row + j) : most;
  float top = largest(most);
  for (; j < count; ++j) top = row[j] > top ? row[j] : top;
  return top;
}

void attend(const form& f, const float* qkv, int64_t kv, int64_t count, float* out, float* logs,
            scratch& s) {
  s.read(f, qkv, kv, count);
  for (int64_t first = 0; first < count; first += block) {
    const int64_t some = std::min(block, count - first), width = first + block;
    for (int64_t h = kv * f.group(); h < (kv + 1) * f.group(); ++h) {
      s.score(f, qkv, h, first, some);
      float share[block];
      for (int64_t i = 0; i < some; ++i) {
        float* row = &s.scores[i * s.padded];
        const float top = top_of(row, first + i + 1);
        const float all = weigh(row, first + i, width, top);
        share[i] = 1 / all;
        logs[(first + i) * f.heads + h] = top + std::log(all);
      }
      product(s.upper, head, s.scores.data(), s.padded, 1, s.values.data(), head, block, width,
              false);
      for (int64_t i = 0; i < some; ++i) {
        float* to = out + ((first + i) * f.heads + h) * head;
        for (int64_t c = 0; c < head; ++c) to[c] = s.upper[i * head + c] * share[i];
      }
    }
  }
}

/// What a block of queries adds to the gradients; weights are computed again from `logs`.
void attend_back(const form& f, const float* qkv, const float* out, const float* logs,
                 const float* d_out, int64_t h, int64_t first, float* d_qkv, scratch& s) {
  const int64_t some = std::min(block, s.tokens - first), width = first + block;
  s.score(f, qkv, h, first, some);
  float* d = s.upper;  // the gradient of this block's outputs
  std::memset(d, 0, sizeof s.upper);
  for (int64_t i = 0; i < some; ++i)
    std::memcpy(d + i * head, d_out + ((first + i) * f.heads + h) * head, head * sizeof(float));
  for (int64_t j = 0; j < width; j += block)
    product(&s.slopes[j], s.padded, d, head, 1, &s.values_across[j], s.padded, block, head, false);
  for (int64_t i = 0; i < block; ++i) {
    float* weight = &s.scores[i * s.padded];
    float* slope = &s.slopes[i * s.padded];
    if (i >= some) {
      std::memset(weight, 0, width * sizeof(float));
      std::memset(slope, 0, width * sizeof(float));
      continue;
    }
    const int64_t at = (first + i) * f.heads + h;
    weigh(weight, first + i, width, logs[at]);
    const float mean = sum(load(out + at * head) * load(d + i * head) +
                           load(out + at * head + lanes) * load(d + i * head + lanes));
    for (int64_t j = 0; j < width; j += lanes)
      store(slope + j, load(weight + j) * (load(slope + j) - mean));
  }
  product(s.d_values.data(), head, s.scores.data(), 1, s.padded, d, head, width, block, true);
  product(s.d_keys.data(), head, s.slopes.data(), 1, s.padded, s.query, head, width, block, true);
  product(s.lower, head, s.slopes.data(), s.padded, 1, s.keys.data(), head, block, width, false);
  for (int64_t i = 0; i < some; ++i)
    turn(s.lower + i * head, f.cosine + (first + i) * lanes, f.sine + (first + i) * lanes,
         f.scale(), true, d_qkv + (first + i) * f.row() + h * head);
}

}  // namespace

extern "C" {

/// Causal attention within each text; text t has the tokens from starts[t] to starts[t + 1].
/// `logs` takes for each token and head the logarithm of its softmax's divisor.
void attention(const float* qkv, const int64_t* starts, int64_t texts, int64_t heads,
               int64_t kv_heads, const float* cosine, const float* sine, float* out, float* logs) {
  const form f{heads, kv_heads, cosine, sine};
#pragma omp parallel
  {
    scratch s;
#pragma omp for schedule(dynamic)
    for (int64_t task = 0; task < texts * kv_heads; ++task) {
      const int64_t at = starts[task / kv_heads], count = starts[task / kv_heads + 1] - at;
      attend(f, qkv + at * f.row(), task % kv_heads, count, out + at * heads * head,
             logs + at * heads, s);
    }
  }
}

void attention_back(const float* qkv, const int64_t* starts, int64_t texts, int64_t heads,
                    int64_t kv_heads, const float* cosine, const float* sine, const float* out,
                    const float* logs, const float* d_out, float* d_qkv) {
  const form f{heads, kv_heads, cosine, sine};
#pragma omp parallel
  {
    scratch s;
#pragma omp for schedule(dynamic)
    for (int64_t task = 0; task < texts * kv_heads; ++task) {
      const int64_t at = starts[task / kv_heads], count = starts[task / kv_heads + 1] - at;
      const int64_t kv = task % kv_heads, o = at * heads * head;
      s.read(f, qkv + at * f.row(), kv, count);
      transpose(s.values.data(), count, s.values_across.data(), s.padded);
      for (int64_t first = 0; first < count; first += block)
        for (int64_t h = kv * f.group(); h < (kv + 1) * f.group(); ++h)
          attend_back(f, qkv + at * f.row(), out + o, logs + at * heads, d_out + o, h, first,
                      d_qkv + at * f.row(), s);
      for (int64_t i = 0; i < count; ++i) {
        float* d_key = d_qkv + (at + i) * f.row() + (heads + kv) * head;
        turn(&s.d_keys[i * head], cosine + i * lanes, sine + i * lanes, 1, true, d_key);
        std::memcpy(d_key + kv_heads * head, &s.d_values[i * head], head * sizeof(float));
      }
    }
  }
}

/// sums = x + delta where there is a delta, else x is the sum; y = sum / rms(sum) * gain.
/// `inverse` takes each row's 1 / rms.
void norm(const float* x, const float* delta, const float* gain, float eps, int64_t rows,
          int64_t width, float* sums, float* y, float* inverse) {
#pragma omp parallel for
  for (int64_t r = 0; r < rows; ++r) {
    lane squares = {};
    for (int64_t c = r * width; c < (r + 1) * width; c += lanes) {
      lane v = load(x + c);
      if (delta) store(sums + c, v = v + load(delta + c));
      squares += v * v;
    }
    inverse[r] = 1 / std::sqrt(sum(squares) / width + eps);
    const float* from = (delta ? sums : x) + r * width;
    for (int64_t c = 0; c < width; c += lanes)
      store(y + r * width + c, load(from + c) * inverse[r] * load(gain + c));
  }
}

/// From the gradients of y and, where it was used, of the sum: those of the sum, and of the gain
/// (added to what is there).
void norm_back(const float* sums, const float* gain, const float* inverse, const float* d_y,
               const float* d_sums, int64_t rows, int64_t width, float* d_x, float* d_gain) {
#pragma omp parallel
  {
    std::vector<float> mine(width);
#pragma omp for
    for (int64_t r = 0; r < rows; ++r) {
      const float *x = sums + r * width, *d = d_y + r * width;
      const float inv = inverse[r];
      lane along = {};
      for (int64_t c = 0; c < width; c += lanes) {
        const lane slope = load(d + c) * load(x + c) * inv;
        store(&mine[c], load(&mine[c]) + slope);
        along += slope * load(gain + c);
      }
      const float share = sum(along) * inv * inv / width;
      for (int64_t c = 0; c < width; c += lanes) {
        const lane slope = load(d + c) * load(gain + c) * inv - load(x + c) * share;
        store(d_x + r * width + c, d_sums ? slope + load(d_sums + r * width + c) : slope);
      }
    }
#pragma omp critical
    for (int64_t c = 0; c < width; ++c) d_gain[c] += mine[c];
  }
}

/// Each row of `both` is a gate and what it gates: y = gate * sigmoid(gate) * up.
void gated(const float* both, int64_t rows, int64_t width, float* y) {
#pragma omp parallel for
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < width; c += lanes) {
      const lane g = load(both + 2 * r * width + c), up = load(both + (2 * r + 1) * width + c);
      store(y + r * width + c, g * up / (1.0f + exponential(-g)));
    }
}

void gated_back(const float* both, const float* d_y, int64_t rows, int64_t width, float* d_both) {
#pragma omp parallel for
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < width; c += lanes) {
      const int64_t gate = 2 * r * width + c, up = gate + width;
      const lane g = load(both + gate), d = load(d_y + r * width + c);
      const lane open = 1.0f / (1.0f + exponential(-g));
      store(d_both + gate, d * load(both + up) * open * (1.0f + g * (1.0f - open)));
      store(d_both + up, d * g * open);
    }
}

/// Turns logits into the gradient of weight * loss, and gives each row's loss.
void cross_entropy(float* logits, const int64_t* goals, const float* weights, int64_t rows,
                   int64_t width, float* losses) {
#pragma omp parallel for
  for (int64_t r = 0; r < rows; ++r) {
    float* row = logits + r * width;
    const float top = top_of(row, width), goal = row[goals[r]];
    const float all = weigh(row, width - 1, width, top), share = weights[r] / all;
    losses[r] = top + std::log(all) - goal;
    for (int64_t c = 0; c < width; c += lanes) store(row + c, load(row + c) * share);
    row[goals[r]] -= weights[r];
  }
}

}  // extern "C"

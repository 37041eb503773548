// Passes over a vocabulary's logits and weights (draw_row). A block's sum is one of lanes, made of
// its vectors in order; sums of blocks are added as doubles, in order.

#include <stddef.h>
#include <stdint.h>

#include "kernels/cpu/lanes_math.inl"
#include "kernels/draw_row.hpp"

namespace lethe {
namespace {

/// The first `count` lanes, fewer than 16.
inline lane_mask first_lanes_of(size_t count) { return mask_of(uint16_t((1u << count) - 1)); }

inline void maxima(const float* logits, size_t n, float* of_blocks) {
  lanes none = set1(-__builtin_inff());
  for (size_t b = 0; b < n; b += draw_block) {
    lanes most[2] = {none, none};
    size_t i = b, end = n - b < draw_block ? n : b + draw_block;
    // The second where the two don't compare.
    for (; i + 32 <= end; i += 32) {
      most[0] = max(load(logits + i), most[0]);
      most[1] = max(load(logits + i + 16), most[1]);
    }
    for (; i < end; i += 16) {
      size_t left = end - i;
      lanes here =
          left >= 16 ? load(logits + i)
                     : select(first_lanes_of(left), load_partial(logits + i, uint32_t(left)), none);
      most[0] = max(here, most[0]);
    }
    of_blocks[b / draw_block] = max_of(max(most[0], most[1]));
  }
}

/// f(i) for each vector of the block at `begin`; the sum of what it says.
template <class F>
inline float sum_of_block(size_t begin, F f) {
  lanes sum = zero();
  for (size_t i = begin; i < begin + draw_block; i += 16) sum = add(sum, f(i));
  return sum_of(sum);
}

inline void allow(const float* from, const uint64_t* bits, size_t n, float* to) {
  lanes none = set1(-__builtin_inff());
  for_vectors(n, [&](size_t i, auto get, auto put) {
    put(to + i, select(mask_of(uint16_t(bits[i / 64] >> i % 64)), get(from + i), none));
  });
}

/// (logit - most) * warmth, not below draw_x_least; equals are equal, infinities, too. Where most
/// and warmth are finite only a NaN makes a NaN, and that is not more than the bound.
template <bool finite>
inline lanes weigh_one(lanes logit, lanes most, lanes warmth) {
  if (finite) return max(mul(sub(logit, most), warmth), set1(draw_x_least));
  logit = select(unordered(logit), set1(-__builtin_inff()), logit);
  lanes apart = mul(sub(logit, most), warmth);
  return select(less(logit, most), max(apart, set1(draw_x_least)), zero());
}

template <bool finite>
inline double weigh_from(const float* logits, size_t n, float largest, float factor, float* x,
                         float* w, float* sums) {
  lanes most = set1(largest), warmth = set1(factor);
  double weighted = 0;
  for (size_t b = 0; b < n; b += draw_block) {
    lanes products = zero();
    sums[b / draw_block] = sum_of_block(b, [&](size_t i) {
      size_t left = i < n ? n - i : 0;
      lanes here;
      if (left >= 16)
        here = weigh_one<finite>(load(logits + i), most, warmth);
      else
        here = select(first_lanes_of(left),
                      weigh_one<finite>(load_partial(logits + i, uint32_t(left)), most, warmth),
                      set1(draw_x_least));
      lanes weight = exp_of_negative(here);
      store(x + i, here);
      store(w + i, weight);
      products = add(products, mul(here, weight));
      return weight;
    });
    weighted += double(sum_of(products));
  }
  return weighted;
}

inline double weigh(const float* logits, size_t n, float largest, float temperature, float* x,
                    float* w, float* sums) {
  float warmth = 1 / temperature;
  bool finite = largest - largest == 0 && warmth - warmth == 0;
  return (finite ? weigh_from<true> : weigh_from<false>)(logits, n, largest, warmth, x, w, sums);
}

inline double weighted(const float* x, const float* w, size_t blocks) {
  double sum = 0;
  for (size_t b = 0; b < blocks * draw_block; b += draw_block)
    sum += double(sum_of_block(b, [&](size_t i) { return mul(load(x + i), load(w + i)); }));
  return sum;
}

inline void nearness(const float* x, float to, size_t blocks, float* keys) {
  for (size_t i = 0; i < blocks * draw_block; i += 16)
    store(keys + i, sub(zero(), absolute(sub(load(x + i), set1(to)))));
}

inline void mass_from(const float* keys, const float* w, size_t blocks, const draw_keys& least,
                      draw_masses& found) {
  lanes bar[draw_at_once];
  for (size_t k = 0; k < draw_at_once; k++) {
    bar[k] = set1(least[k]), found[k] = {0, blocks * draw_block};
  }
  for (size_t b = 0; b < blocks * draw_block; b += draw_block) {
    lanes sum[draw_at_once];
    for (size_t k = 0; k < draw_at_once; k++) sum[k] = zero();
    for (size_t i = b; i < b + draw_block; i += 16) {
      lanes key = load(keys + i), weight = load(w + i);
#pragma GCC unroll 4
      for (size_t k = 0; k < draw_at_once; k++) {
        lane_mask lighter = less(key, bar[k]);
        found[k].count -= size_t(__builtin_popcount(bits_of(lighter)));
        sum[k] = add(sum[k], select(lighter, zero(), weight));
      }
    }
    for (size_t k = 0; k < draw_at_once; k++) found[k].weight += double(sum_of(sum[k]));
  }
}

inline size_t find(const float* keys, size_t blocks, float least, float below, uint32_t* at) {
  size_t found = 0;
  for (size_t i = 0; i < blocks * draw_block; i += 16) {
    lanes key = load(keys + i);
    uint32_t here = bits_of(less(key, set1(below))) & ~bits_of(less(key, set1(least)));
    for (; here != 0; here &= here - 1) at[found++] = uint32_t(i) + uint32_t(__builtin_ctz(here));
  }
  return found;
}

inline void drop(const float* keys, size_t blocks, float least, float* w, float* sums) {
  for (size_t b = 0; b < blocks * draw_block; b += draw_block) {
    sums[b / draw_block] = sum_of_block(b, [&](size_t i) {
      lanes kept = select(less(load(keys + i), set1(least)), zero(), load(w + i));
      store(w + i, kept);
      return kept;
    });
  }
}

constexpr draw_row draw_functions{.maxima = maxima,
                                  .allow = allow,
                                  .weigh = weigh,
                                  .weighted = weighted,
                                  .nearness = nearness,
                                  .mass_from = mass_from,
                                  .find = find,
                                  .drop = drop};

}  // namespace
}  // namespace lethe

// Passes over a vocabulary's logits and weights (draw_row). A block's sum is one of lanes, made of
// its vectors in order; sums of blocks are added as doubles, in order.

#include <stddef.h>
#include <stdint.h>

#include "kernels/cpu/lanes_math.inl"
#include "kernels/draw_row.hpp"

namespace lethe {
namespace {

/// The first `count` lanes, all from 16 on.
inline lane_mask first_lanes_of(size_t count) {
  return mask_of(uint16_t(count >= 16 ? 0xffff : (1u << count) - 1));
}

/// Asks for what is 2 KiB further on: rows come from farther away than a core asks by itself.
inline const float* ahead(const float* p) {
  __builtin_prefetch(p + 512);
  return p;
}

inline void maxima(const float* logits, size_t n, float* of_blocks) {
  lanes none = set1(-__builtin_inff());
  for (size_t b = 0; b < n; b += draw_block) {
    lanes most[2] = {none, none};
    size_t i = b, end = n - b < draw_block ? n : b + draw_block;
    // The second where the two don't compare.
    for (; i + 32 <= end; i += 32) {
      most[0] = max(load(ahead(logits + i)), most[0]);
      most[1] = max(load(ahead(logits + i + 16)), most[1]);
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
    put(to + i, select(mask_of(uint16_t(bits[i / 64] >> i % 64)), get(ahead(from + i)), none));
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

/// f(i, x, w) for each vector of a block, of which `left` logits are there; the sum of weights.
template <bool finite, bool whole, class F>
inline float weigh_block(const float* logits, size_t left, lanes most, lanes warmth, F f) {
  static_assert(draw_x_least * log2_e < -126, "what is not there weighs nothing");
  lanes sum = zero();
  for (size_t begin = 0; begin < draw_block; begin += 16 * exp_at_once) {
    lanes x[exp_at_once], w[exp_at_once];
    for_each_of<exp_at_once>([&](uint32_t v) {
      size_t i = begin + v * 16, here = whole ? 16 : i < left ? left - i : 0;
      lanes logit = here >= 16 ? load(logits + i) : load_partial(logits + i, uint32_t(here));
      x[v] = weigh_one<finite>(logit, most, warmth);
      if (!whole) x[v] = select(first_lanes_of(here), x[v], set1(draw_x_least));
      w[v] = mul(x[v], set1(log2_e));
    });
    two_to_each(w);
    for_each_of<exp_at_once>([&](uint32_t v) {
      f(begin + v * 16, x[v], w[v]);
      sum = add(sum, w[v]);
    });
  }
  return sum_of(sum);
}

/// f(b, block) for each block's first logit; `block` takes weigh_block's function.
template <bool finite, class F>
inline void weigh_blocks(const float* logits, size_t n, lanes most, lanes warmth, F f) {
  size_t b = 0;
  for (; b + draw_block <= n; b += draw_block)
    f(b, [&](auto g) { return weigh_block<finite, true>(logits + b, 0, most, warmth, g); });
  if (b < n)
    f(b, [&](auto g) { return weigh_block<finite, false>(logits + b, n - b, most, warmth, g); });
}

template <class F>
inline void weigh_all_blocks(const float* logits, size_t n, float largest, float warmth, F f) {
  bool finite = largest - largest == 0 && warmth - warmth == 0;
  auto weigh = finite ? weigh_blocks<true, F> : weigh_blocks<false, F>;
  weigh(logits, n, set1(largest), set1(warmth), f);
}

inline double weigh(const float* logits, size_t n, float largest, float temperature, float* x,
                    float* w, float* sums) {
  double weighted = 0;
  weigh_all_blocks(logits, n, largest, 1 / temperature, [&](size_t b, auto block) {
    lanes products = zero();
    sums[b / draw_block] = block([&](size_t i, lanes of_x, lanes of_w) {
      store(x + b + i, of_x);
      store(w + b + i, of_w);
      products = add(products, mul(of_x, of_w));
    });
    weighted += double(sum_of(products));
  });
  return weighted;
}

inline double weight_of_all(const float* logits, size_t n, float largest) {
  double sum = 0;
  weigh_all_blocks(logits, n, largest, 1,
                   [&](size_t, auto block) { sum += double(block([](size_t, lanes, lanes) {})); });
  return sum;
}

inline double weighted(const float* x, const float* w, size_t blocks) {
  double sum = 0;
  for (size_t b = 0; b < blocks * draw_block; b += draw_block)
    sum += double(sum_of_block(b, [&](size_t i) { return mul(load(x + i), load(w + i)); }));
  return sum;
}

inline lanes nearness(lanes x, lanes to) { return sub(zero(), absolute(sub(x, to))); }

inline void mass_from(const float* x, float to, const float* w, size_t blocks,
                      const draw_keys& least, draw_masses& found) {
  lanes near = set1(to);
  lanes bar[draw_at_once];
  for (size_t k = 0; k < draw_at_once; k++) {
    bar[k] = set1(least[k]), found[k] = {0, blocks * draw_block};
  }
  for (size_t b = 0; b < blocks * draw_block; b += draw_block) {
    lanes sum[draw_at_once];
    for (size_t k = 0; k < draw_at_once; k++) sum[k] = zero();
    for (size_t i = b; i < b + draw_block; i += 16) {
      lanes key = nearness(load(x + i), near), weight = load(w + i);
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

/// Where f(i) is in [least, below).
template <class F>
inline size_t find_by(size_t blocks, float least, float below, uint32_t* at, F f) {
  size_t found = 0;
  for (size_t i = 0; i < blocks * draw_block; i += 16) {
    lanes key = f(i);
    uint32_t here = bits_of(less(key, set1(below))) & ~bits_of(less(key, set1(least)));
    for (; here != 0; here &= here - 1) at[found++] = uint32_t(i) + uint32_t(__builtin_ctz(here));
  }
  return found;
}

inline size_t find(const float* keys, size_t blocks, float least, float below, uint32_t* at) {
  return find_by(blocks, least, below, at, [=](size_t i) { return load(keys + i); });
}

inline size_t find_near(const float* x, float to, size_t blocks, float least, float below,
                        uint32_t* at) {
  return find_by(blocks, least, below, at,
                 [=](size_t i) { return nearness(load(x + i), set1(to)); });
}

template <class F>
inline void drop_by(size_t blocks, float least, float* w, float* sums, F f) {
  for (size_t b = 0; b < blocks * draw_block; b += draw_block) {
    sums[b / draw_block] = sum_of_block(b, [&](size_t i) {
      lanes kept = select(less(f(i), set1(least)), zero(), load(w + i));
      store(w + i, kept);
      return kept;
    });
  }
}

inline void drop_far(const float* x, float to, size_t blocks, float least, float* w, float* sums) {
  drop_by(blocks, least, w, sums, [=](size_t i) { return nearness(load(x + i), set1(to)); });
}

inline void drop_light(size_t blocks, float least, float* w, float* sums) {
  drop_by(blocks, least, w, sums, [=](size_t i) { return load(w + i); });
}

constexpr draw_row draw_functions{.maxima = maxima,
                                  .allow = allow,
                                  .weigh = weigh,
                                  .weight_of_all = weight_of_all,
                                  .weighted = weighted,
                                  .mass_from = mass_from,
                                  .find = find,
                                  .find_near = find_near,
                                  .drop_far = drop_far,
                                  .drop_light = drop_light};

}  // namespace
}  // namespace lethe

#pragma once

// What is built from lanes alone; one of the lanes_*.hpp comes before it.

namespace lethe {
namespace {

/// e^x for x <= 0, within one unit in the last place; 0 where the result would be denormal
/// (below -87.3365), since denormals are slow. A NaN stays one.
inline lanes exp_of_negative(lanes x) {
  constexpr float least = -0x1.5d589ep+6f;  // log of the least normal float, rounded up
  constexpr float ln2_high = 0x1.62e430p-1f, ln2_low = -0x1.05c610p-29f;
  lanes bounded = max(set1(least), x);
  lanes n = round_to_whole(mul(bounded, set1(0x1.715476p+0f)));
  lanes r = fma(n, set1(-ln2_high), bounded);
  r = fma(n, set1(-ln2_low), r);
  // 1 + r + r^2 * (...), fitted on |r| <= ln(2)/2 to a relative error of 3.2e-9.
  lanes p = fma(r, set1(0x1.6a5056p-10f), set1(0x1.123974p-7f));
  p = fma(p, r, set1(0x1.5558acp-5f));
  p = fma(p, r, set1(0x1.555492p-3f));
  p = fma(p, r, set1(0x1.fffffcp-2f));
  p = fma(p, r, set1(1.0f));
  p = fma(p, r, set1(1.0f));
  return select(less(x, set1(least)), zero(), times_power_of_two(p, n));
}

inline float first_of(lanes a) {
  float all[16];
  store(all, a);
  return all[0];
}

inline uint32_t least_of(uint32_t a, uint32_t b) { return a < b ? a : b; }
inline uint32_t greatest_of(uint32_t a, uint32_t b) { return a > b ? a : b; }

/// f(i, get, put) for each 16 of n; `get` and `put` move the 16 lanes at i, or what is left of n.
template <class F>
inline void for_vectors(size_t n, F f) {
  auto get = [](const float* p) { return load(p); };
  auto put = [](float* p, lanes a) { store(p, a); };
  size_t i = 0;
  for (; i + 16 <= n; i += 16) f(i, get, put);
  if (i == n) return;
  uint32_t rest = uint32_t(n - i);
  f(
      i, [rest](const float* p) { return load_partial(p, rest); },
      [rest](float* p, lanes a) { store_partial(p, a, rest); });
}

}  // namespace
}  // namespace lethe

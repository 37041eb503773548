#pragma once

// What is built from lanes alone; one of the lanes_*.hpp comes before it.

namespace lethe {
namespace {

/// f(i) for each of the first few numbers, one after the other in the code as well.
template <uint32_t count, class F>
[[gnu::always_inline]] inline void for_each_of(F f) {
#pragma GCC unroll 8
  for (uint32_t i = 0; i < count; i++) f(i);
}

/// e^x for x <= 0, within one unit in the last place; 0 where the result would be denormal
/// (below -87.3365), since denormals are slow. A NaN stays one. Step by step for all of x: each
/// step waits for the one before it, and the others fill that time.
template <uint32_t count>
inline void exp_of_negatives(lanes (&x)[count]) {
  constexpr float least = -0x1.5d589ep+6f;  // log of the least normal float, rounded up
  constexpr float ln2_high = 0x1.62e430p-1f, ln2_low = -0x1.05c610p-29f;
  // 1 + r + r^2 * (...), fitted on |r| <= ln(2)/2 to a relative error of 3.2e-9.
  constexpr float of_r[] = {0x1.5558acp-5f, 0x1.555492p-3f, 0x1.fffffcp-2f, 1, 1};
  lanes bounded[count], n[count], r[count], p[count];
  for_each_of<count>([&](uint32_t i) { bounded[i] = max(set1(least), x[i]); });
  for_each_of<count>([&](uint32_t i) { n[i] = mul(bounded[i], set1(0x1.715476p+0f)); });
  for_each_of<count>([&](uint32_t i) { n[i] = round_to_whole(n[i]); });
  for_each_of<count>([&](uint32_t i) { r[i] = fma(n[i], set1(-ln2_high), bounded[i]); });
  for_each_of<count>([&](uint32_t i) { r[i] = fma(n[i], set1(-ln2_low), r[i]); });
  for_each_of<count>(
      [&](uint32_t i) { p[i] = fma(r[i], set1(0x1.6a5056p-10f), set1(0x1.123974p-7f)); });
  for_each_of<5>([&](uint32_t k) {
    for_each_of<count>([&](uint32_t i) { p[i] = fma(p[i], r[i], set1(of_r[k])); });
  });
  for_each_of<count>([&](uint32_t i) {
    x[i] = select(less(x[i], set1(least)), zero(), times_power_of_two(p[i], n[i]));
  });
}
inline lanes exp_of_negative(lanes x) {
  lanes alone[1] = {x};
  exp_of_negatives(alone);
  return alone[0];
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

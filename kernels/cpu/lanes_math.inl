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

/// What a step of a product adds to a sum: a column's weight times x's number.
struct of_floats {
  using terms = of_floats;
  static constexpr uint32_t columns = 1;
  [[gnu::always_inline]] static lanes add(lanes w, lanes x, lanes sum) { return fma(w, x, sum); }
};

/// log2(e): 2^(log2_e * x) is e^x.
inline constexpr float log2_e = 0x1.715476p+0f;

/// 2^x for x <= 127, within two units in the last place; 0 where the result would be denormal
/// (below -126), since denormals are slow. A NaN stays one. Step by step for all of x: each step
/// waits for the one before it, and the others fill that time.
template <uint32_t count>
[[gnu::always_inline]] inline void two_to_each(lanes (&x)[count]) {
  // 1 + r * (...), fitted on |r| <= 1/2 to a relative error of 9.4e-8.
  constexpr float of_r[] = {0x1.3ce93ep-7f, 0x1.c6b840p-5f, 0x1.ebf9c0p-3f, 0x1.62e428p-1f, 1};
  lanes r[count], p[count];
  for_each_of<count>([&](uint32_t i) { r[i] = off_whole(x[i]); });
  for_each_of<count>([&](uint32_t i) { p[i] = set1(0x1.5b63c0p-10f); });
  for_each_of<5>([&](uint32_t k) {
    for_each_of<count>([&](uint32_t i) { p[i] = fma(p[i], r[i], set1(of_r[k])); });
  });
  for_each_of<count>(
      [&](uint32_t i) { x[i] = times_two_to(not_less(x[i], set1(-126)), p[i], sub(x[i], r[i])); });
}
inline lanes two_to(lanes x) {
  lanes alone[1] = {x};
  two_to_each(alone);
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

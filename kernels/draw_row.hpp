#pragma once

#include <cstddef>
#include <cstdint>

// What drawing a token asks of a whole vocabulary. Arrays of x, w and keys are whole blocks long.
// A key near `to` is -|x - to|; near 0 that is x, which is never above.

namespace lethe {

inline constexpr size_t draw_block = 256;
inline constexpr float draw_x_least = -88;
[[gnu::always_inline]] constexpr size_t draw_blocks(size_t n) {
  return (n + draw_block - 1) / draw_block;
}

/// Weights of some numbers, and how many numbers.
struct draw_mass {
  double weight;
  size_t count;
};

/// So many keys are looked at in one pass.
inline constexpr size_t draw_at_once = 3;
using draw_keys = float[draw_at_once];
using draw_masses = draw_mass[draw_at_once];

/// One instruction set's functions; all give the same bits (see cpu_row).
struct draw_row {
  /// The largest of each block's logits; NaN counts as -inf.
  void (*maxima)(const float* logits, size_t n, float* of_blocks);
  /// to[i] = from[i] where bit i is set, else -inf. May be in place.
  void (*allow)(const float* from, const uint64_t* bits, size_t n, float* to);
  /// x = (logit - largest) / temperature, not below draw_x_least, and w = e^x, 0 from -87.34 down;
  /// sums: of each block's w. NaN counts as -inf. What fills the last block is that and 0. Gives
  /// the sum of x * w. x may be where the logits are.
  double (*weigh)(const float* logits, size_t n, float largest, float temperature, float* x,
                  float* w, float* sums);
  /// The sum of those sums at temperature 1.
  double (*weight_of_all)(const float* logits, size_t n, float largest);
  /// The sum of x * w.
  double (*weighted)(const float* x, const float* w, size_t blocks);
  /// found[i]: of those whose key near `to` is least[i] or more.
  void (*mass_from)(const float* x, float to, const float* w, size_t blocks, const draw_keys& least,
                    draw_masses& found);
  /// Where the key is in [least, below), in order; how many there are.
  size_t (*find)(const float* keys, size_t blocks, float least, float below, uint32_t* at);
  size_t (*find_near)(const float* x, float to, size_t blocks, float least, float below,
                      uint32_t* at);
  /// w = 0 where the key near `to` is less, or w itself; sums anew.
  void (*drop_far)(const float* x, float to, size_t blocks, float least, float* w, float* sums);
  void (*drop_light)(size_t blocks, float least, float* w, float* sums);
};

}  // namespace lethe

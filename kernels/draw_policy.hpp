#pragma once

#include <cstdint>

#include "kernels/draw_row.hpp"

// What the host's draw and the device's decide alike. No file of an instruction set includes it.

namespace lethe {

/// The others' bounds are 0 and 1.
inline constexpr float draw_temperature_max = 100;

/// How the token of a row of logits is drawn, where that takes nothing but numbers; as `sampling`
/// names them, within check_sampling's bounds. `u`, in [0, 1), is the draw's chance.
struct row_draw {
  uint32_t row = 0;
  uint32_t top_k = 0;  // 0: all
  float temperature = 1, typical_p = 1, top_p = 1, min_p = 0;
  double u = 0;
};

/// So few are put in order one by one, and those so near to each other as well. Where so small a
/// part of the blocks is left, it moves together.
inline constexpr size_t draw_few = 48, draw_part = 8;
inline constexpr float draw_near = 1e-5f, draw_below_all = 2 * draw_x_least - 1, draw_above_all = 1;

/// What a cut must keep at least: so much weight, so many.
struct draw_goal {
  double weight = 0;
  size_t count = 0;
  constexpr bool reached_by(const draw_mass& m) const {
    return m.weight >= weight && m.count >= count;
  }
};

/// Bisects for the key that the goal's weight and number reach, while there are many between:
/// mass_from(key) is what has this key or more, `all` everything.
struct draw_cut {
  float low = draw_below_all, high = draw_above_all;
  draw_mass from_low, from_high{0, 0};

  constexpr bool goes_on() const {
    return from_low.count - from_high.count > draw_few && high - low > draw_near;
  }
  constexpr float middle() const { return middle_of(low, high); }
  /// Far below a key little weighs anything: from there down distances double.
  static constexpr float middle_of(float low, float high) {
    float half = low + (high - low) / 2, doubled = 2 * high - 11;
    return doubled > half ? doubled : half;
  }
  constexpr void take(float key, const draw_mass& from_key, const draw_goal& goal) {
    bool reached = goal.reached_by(from_key);
    (reached ? low : high) = key;
    (reached ? from_low : from_high) = from_key;
  }
};

/// Nothing is left to chance.
constexpr bool takes_likeliest(const row_draw& how, float largest) {
  return how.temperature == 0 || how.top_k == 1 || largest == __builtin_inff();
}

/// Whether so few that it pays are left of so many blocks.
constexpr bool moves_together(size_t left, size_t blocks) {
  return draw_blocks(left) * draw_part < blocks;
}

}  // namespace lethe

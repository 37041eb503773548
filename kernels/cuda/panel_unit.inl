#pragma once

#include "kernels/cuda/simt.hpp"
#include "kernels/panels.hpp"

namespace lethe::device {

/// What is added to the numbers of a type to store them without sign; q8_0's flip of the top bit
/// is undone when they are read, q6_k's 32 is times its scales.
template <dtype T>
constexpr int32_t offset_of() {
  return T == dtype::q4_0 ? 8 : T == dtype::q5_0 ? 16 : 0;
}
template <dtype T>
constexpr bool has_fifth_bit() {
  return T == dtype::q5_0 || T == dtype::q5_1 || T == dtype::q5_k;
}
template <dtype T>
constexpr bool is_k45() {
  return T == dtype::q4_k || T == dtype::q5_k;
}
template <dtype T>
constexpr bool has_minimum() {
  return T == dtype::q4_1 || T == dtype::q5_1 || is_k45<T>();
}

/// One row's share of a unit: 32 numbers, four a word, signed bytes.
struct unit_numbers {
  uint32_t word[8];
};
struct unit_scales {
  float scale, minimum;  // the minimum is added to each number times its scale
  int32_t half[2];       // q6_k: of the half units
};

struct unit_weights {
  unit_numbers numbers;
  unit_scales scales;
};

/// Words as they lie in memory: they take fewer registers on their way than what they mean.
struct packed_pair {
  uint32_t number[2], high[2];
};
struct packed_scales {
  uint32_t half[2], of_unit[2];
};

/// Where bytes of a panel lie. get(n): the word n bytes behind, n being a multiple of its size.
struct in_memory {
  const uint8_t* at;
  template <class Word>
  LETHE_BODY Word get(uint32_t n) const {
    return load<Word>(at + n);
  }
};
template <class Block>
struct in_shared_words {
  Block& block;
  uint32_t first;
  template <class Word>
  LETHE_BODY Word get(uint32_t n) const {
    return Word(block.get_word(first + n / 4) >> n % 4 * 8);
  }
};

/// A unit of one row (lane) of a panel.
template <dtype T, class From>
struct unit_of_row {
  static constexpr unit_facts facts = unit_of(T);
  From header, unit;
  uint32_t lane;

  LETHE_BODY unit_weights weights() const { return {numbers(), scales()}; }
  LETHE_BODY unit_scales scales() const { return scales_of(read_scales()); }
  LETHE_BODY unit_numbers numbers() const {
    unit_numbers n;
    for (uint32_t t = 0; t < 4; t++) {
      uint32_t pair[2];
      pair_of(read_pair(t), t, pair);
      n.word[t] = pair[0];
      n.word[t + 4] = pair[1];
    }
    return n;
  }

  LETHE_BODY packed_scales read_scales() const {
    const From& first = is_k45<T>() || T == dtype::q6_k ? header : unit;
    packed_scales p{{first.template get<uint16_t>(2 * lane)}, {}};
    if constexpr (has_minimum<T>()) p.half[1] = first.template get<uint16_t>(32 + 2 * lane);
    if constexpr (is_k45<T>()) {
      for (uint32_t i = 0; i < 2; i++) {
        p.of_unit[i] = unit.template get<uint8_t>(panel_rows * i + lane);
      }
    }
    if constexpr (T == dtype::q6_k) p.of_unit[0] = unit.template get<uint16_t>(2 * lane);
    return p;
  }
  LETHE_BODY static unit_scales scales_of(const packed_scales& p) {
    unit_scales s{from_f16(uint16_t(p.half[0])), 0.0f, {}};
    if constexpr (has_minimum<T>()) s.minimum = from_f16(uint16_t(p.half[1]));
    if constexpr (is_k45<T>()) {
      s.scale = s.scale * float(p.of_unit[0]);
      s.minimum = -s.minimum * float(p.of_unit[1]);
    }
    if constexpr (T == dtype::q6_k) {
      s.half[0] = int8_t(p.of_unit[0] & 0xff);
      s.half[1] = int8_t(p.of_unit[0] >> 8);
    }
    return s;
  }

  /// Of vectors t and t + 4 of the numbers.
  LETHE_BODY packed_pair read_pair(uint32_t t) const {
    packed_pair p{{word_at(numbers_at + 64 * t)}, {}};
    if constexpr (T == dtype::q8_0) p.number[1] = word_at(numbers_at + 64 * (t + 4));
    if constexpr (has_fifth_bit<T>()) p.high[0] = word_at(facts.scale_bytes);
    if constexpr (T == dtype::q6_k) {
      for (uint32_t i = 0; i < 2; i++) p.high[i] = word_at(facts.scale_bytes + 64 * i);
    }
    return p;
  }
  LETHE_BODY static void pair_of(const packed_pair& p, uint32_t t, uint32_t (&pair)[2]) {
    for (uint32_t i = 0; i < 2; i++) {
      if constexpr (T == dtype::q8_0) {
        pair[i] = p.number[i] ^ 0x80808080;
      } else {
        pair[i] = p.number[0] >> 4 * i & 0x0f0f0f0f;
      }
      if constexpr (has_fifth_bit<T>()) pair[i] |= (p.high[0] >> (t + 4 * i) & 0x01010101) << 4;
      if constexpr (T == dtype::q6_k) pair[i] |= (p.high[i] >> 2 * t & 0x03030303) << 4;
    }
  }

 private:
  static constexpr uint32_t numbers_at = facts.scale_bytes + facts.high_bytes;

  LETHE_BODY uint32_t word_at(uint32_t offset) const {
    return unit.template get<uint32_t>(offset + 4 * lane);
  }
};

/// Bytes of a panel before the block of unit u, and of the block before the unit behind its header.
template <dtype T>
LETHE_BODY size_t bytes_before_block(uint32_t u) {
  constexpr uint32_t per_block = block_elements(T) / unit_columns, bytes = panel_block_bytes(T);
  return size_t{u / per_block} * bytes;
}
template <dtype T>
LETHE_BODY uint32_t bytes_before_unit(uint32_t u) {
  constexpr uint32_t per_block = block_elements(T) / unit_columns, bytes = unit_bytes(T);
  return u % per_block * bytes;
}

/// Unit u of one row of a panel.
template <dtype T>
struct unit_place : unit_of_row<T, in_memory> {
  LETHE_BODY unit_place(const uint8_t* panel, uint32_t u, uint32_t row)
      : unit_of_row<T, in_memory>{{panel + bytes_before_block<T>(u)}, {}, row} {
    constexpr uint32_t header = unit_of(T).header_bytes;
    this->unit.at = this->header.at + header + bytes_before_unit<T>(u);
  }
};

/// One number of one row of a panel of floats.
template <dtype T>
LETHE_BODY float float_at(const uint8_t* panel, size_t k, uint32_t lane) {
  size_t at = k * panel_rows + lane;
  if constexpr (T == dtype::f32) return load<float>(panel + 4 * at);
  if constexpr (T == dtype::f16) return from_f16(load<uint16_t>(panel + 2 * at));
  if constexpr (T == dtype::bf16) return from_bf16(load<uint16_t>(panel + 2 * at));
}

/// panel_bytes, for bodies.
template <dtype T>
LETHE_BODY size_t panel_stride(uint32_t cols) {
  constexpr uint32_t elements = block_elements(T), bytes = panel_block_bytes(T);
  return (size_t{cols / elements} * bytes + 63) / 64 * 64;
}
template <dtype T>
LETHE_BODY uint32_t segment_start(uint32_t cols, uint32_t s) {
  constexpr uint32_t block = block_elements(T);
  return uint32_t(uint64_t{cols / block} * s / segments) * block;
}

}  // namespace lethe::device

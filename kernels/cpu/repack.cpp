#include <cstring>

#include "kernels/panels.hpp"

namespace lethe {

size_t panel_bytes(dtype t, uint32_t cols) {
  size_t bytes = size_t{cols / block_elements(t)} * panel_block_bytes(t);
  return (bytes + 63) / 64 * 64;
}

namespace {

using byte = uint8_t;

void copy_u16(const byte* from, byte* to) { std::memcpy(to, from, 2); }

/// Four columns of a row, one a byte.
uint32_t read_four(const byte* p) {
  uint32_t v;
  std::memcpy(&v, p, 4);
  return v;
}
/// Into lane `row` of vector g.
void put_four(uint32_t four, byte* vectors, uint32_t g, uint32_t row) {
  std::memcpy(vectors + 64 * g + 4 * row, &four, 4);
}

/// Every fourth bit, from bit `i` on, gathered: bit g of the result is bit 4g + i.
uint32_t every_fourth(uint32_t bits, uint32_t i) {
  uint32_t v = bits >> i & 0x11111111;
  v = (v | v >> 3) & 0x03030303;
  v = (v | v >> 6) & 0x000f000f;
  return (v | v >> 12) & 0xff;
}

/// What is not numbers of a row's block. The file's 32 high bits are in order: bit k is column k's.
template <dtype T>
void repack_scales(const byte* block, uint32_t row, byte* unit) {
  constexpr unit_facts f = unit_of(T);
  constexpr uint32_t scale_bytes = f.scale_bytes / panel_rows;
  copy_u16(block, unit + 2 * row);
  if (scale_bytes == 4) copy_u16(block + 2, unit + 32 + 2 * row);
  if (f.high_bytes) {
    uint32_t bits = read_four(block + scale_bytes);
    uint32_t four = every_fourth(bits, 0) | every_fourth(bits, 1) << 8 |
                    every_fourth(bits, 2) << 16 | every_fourth(bits, 3) << 24;
    put_four(four, unit + f.scale_bytes, 0, row);
  }
}

// Sixteen bytes of a row, or one number of each of four or eight rows.
using fours = uint32_t __attribute__((vector_size(16)));
using eights = uint16_t __attribute__((vector_size(16)));

fours first_halves(fours a, fours b) { return __builtin_shufflevector(a, b, 0, 4, 1, 5); }
fours second_halves(fours a, fours b) { return __builtin_shufflevector(a, b, 2, 6, 3, 7); }
eights first_halves(eights a, eights b) {
  return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
}
eights second_halves(eights a, eights b) {
  return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
}

/// As many columns as rows, turned: column i goes to `to` + i * stride. Each round doubles the
/// numbers of one column that lie side by side.
template <class Vector>
void put_square(const byte* const* rows, size_t skip, Vector flip, byte* to, size_t stride) {
  constexpr uint32_t n = sizeof(Vector) / sizeof(flip[0]);
  Vector now[n], next[n];
  for (uint32_t i = 0; i < n; i++) std::memcpy(&now[i], rows[i] + skip, sizeof(Vector));
  for (uint32_t side_by_side = 1; side_by_side < n; side_by_side *= 2) {
    for (uint32_t i = 0; i < n / 2; i++) {
      next[2 * i] = first_halves(now[i], now[i + n / 2]);
      next[2 * i + 1] = second_halves(now[i], now[i + n / 2]);
    }
    std::memcpy(now, next, sizeof now);
  }
  for (uint32_t i = 0; i < n; i++) {
    now[i] ^= flip;
    std::memcpy(to + i * stride, &now[i], sizeof(Vector));
  }
}

/// q8_0, q4_0, q4_1, q5_0, q5_1, a block of each row: the file's bytes already pair column j with
/// j + 16. Rows go by fours as long as there are four.
template <dtype T>
void repack_blocks_of_32(const byte* const* blocks, uint32_t count, byte* unit) {
  constexpr unit_facts f = unit_of(T);
  constexpr uint32_t before = f.scale_bytes / panel_rows + (f.high_bytes ? 4 : 0);
  constexpr uint32_t flip = T == dtype::q8_0 ? 0x80808080 : 0;
  byte* vectors = unit + f.scale_bytes + f.high_bytes;
  for (uint32_t r = 0; r < count; r++) repack_scales<T>(blocks[r], r, unit);
  uint32_t r = 0;
  for (; r + 4 <= count; r += 4) {
    for (uint32_t g = 0; g < f.number_bytes / 64; g += 4)
      put_square(blocks + r, before + 4 * g, fours{} + flip, vectors + 64 * g + 4 * r, 64);
  }
  for (; r < count; r++) {
    for (uint32_t g = 0; g < f.number_bytes / 64; g++)
      put_four(read_four(blocks[r] + before + 4 * g) ^ flip, vectors, g, r);
  }
}

/// The nibbles at bit `shift` of 32 bytes: column j paired with j + 16.
void pair_nibbles(const byte* from, uint32_t shift, byte* vectors, uint32_t row) {
  for (uint32_t g = 0; g < 4; g++) {
    uint32_t low = read_four(from + 4 * g) >> shift & 0x0f0f0f0f;
    uint32_t high = read_four(from + 16 + 4 * g) >> shift & 0x0f0f0f0f;
    put_four(low | high << 4, vectors, g, row);
  }
}

/// Sub-block j's 6-bit scale and minimum of q4_k and q5_k's 12 bytes.
void scale_and_minimum(const byte* s, uint32_t j, byte& scale, byte& minimum) {
  if (j < 4) {
    scale = s[j] & 63;
    minimum = s[j + 4] & 63;
  } else {
    scale = byte((s[j + 4] & 15) | s[j - 4] >> 6 << 4);
    minimum = byte(s[j + 4] >> 4 | s[j] >> 6 << 4);
  }
}

/// The file holds d, dmin, 12 bytes of scales, [q5_k: 32 bytes whose bit j is the fifth bit of
/// sub-block j], and nibbles: low ones of 32 bytes are sub-block 2c, high ones 2c + 1.
template <dtype T>
void repack_q45_k(const byte* block, uint32_t row, byte* panel) {
  constexpr unit_facts f = unit_of(T);
  copy_u16(block, panel + 2 * row);
  copy_u16(block + 2, panel + 32 + 2 * row);
  const byte* fifths = block + 16;
  const byte* nibbles = fifths + (f.high_bytes ? 32 : 0);
  for (uint32_t j = 0; j < 8; j++) {
    byte* unit = panel + f.header_bytes + j * unit_bytes(T);
    scale_and_minimum(block + 4, j, unit[row], unit[16 + row]);
    unit += f.scale_bytes;
    uint32_t bits = 0;
    for (uint32_t g = 0; f.high_bytes && g < 8; g++) {
      bits |= (read_four(fifths + 4 * g) >> j & 0x01010101) << g;
    }
    if (f.high_bytes) put_four(bits, unit, 0, row);
    pair_nibbles(nibbles + j / 2 * 32, j % 2 * 4, unit + f.high_bytes, row);
  }
}

/// The file holds low nibbles (128 bytes), high bit pairs (64), 16 scales, d. In each half of 128
/// columns, sub-block j (of 32) has its nibbles in bytes 32 (j % 2).., low for j < 2, else high,
/// and its high bits at bit 2j of the half's 32 bytes.
void repack_q6_k(const byte* block, uint32_t row, byte* panel) {
  constexpr unit_facts f = unit_of(dtype::q6_k);
  copy_u16(block + 208, panel + 2 * row);
  for (uint32_t j = 0; j < 8; j++) {
    byte* unit = panel + f.header_bytes + j * unit_bytes(dtype::q6_k);
    copy_u16(block + 192 + 2 * j, unit + 2 * row);
    unit += f.scale_bytes;
    const byte* high = block + 128 + j / 4 * 32;
    for (uint32_t half = 0; half < 2; half++) {
      uint32_t pairs = 0;
      for (uint32_t g = 0; g < 4; g++) {
        pairs |= (read_four(high + 16 * half + 4 * g) >> (j % 4 * 2) & 0x03030303) << (2 * g);
      }
      put_four(pairs, unit, half, row);
    }
    pair_nibbles(block + j / 4 * 64 + j % 2 * 32, j % 4 / 2 * 4, unit + f.high_bytes, row);
  }
}

template <void (*Repack)(const byte* block, uint32_t row, byte* panel)>
void by_rows(const byte* const* blocks, uint32_t count, byte* panel) {
  for (uint32_t r = 0; r < count; r++) Repack(blocks[r], r, panel);
}

/// A panel, block by block, by what knows the type.
template <dtype T, void (*Repack)(const byte* const* blocks, uint32_t count, byte* panel)>
void repack_each(const byte* const* rows, uint32_t count, uint32_t cols, byte* panel) {
  const byte* blocks[panel_rows];
  for (uint32_t r = 0; r < count; r++) blocks[r] = rows[r];
  for (uint32_t b = 0; b < cols / block_elements(T); b++) {
    Repack(blocks, count, panel);
    for (uint32_t r = 0; r < count; r++) blocks[r] += block_bytes(T);
    panel += panel_block_bytes(T);
  }
}

template <class Vector>
void transpose_rows(const byte* const* rows, uint32_t count, uint32_t cols, byte* panel) {
  constexpr uint32_t bytes = sizeof(Vector{}[0]), n = sizeof(Vector) / bytes;
  const uint32_t whole_rows = count / n * n, whole_cols = cols / n * n;
  for (uint32_t c = 0; c < whole_cols; c += n) {
    for (uint32_t r = 0; r < whole_rows; r += n)
      put_square(rows + r, size_t{c} * bytes, Vector{},
                 panel + (size_t{c} * panel_rows + r) * bytes, panel_rows * bytes);
  }
  for (uint32_t r = 0; r < count; r++) {
    for (uint32_t c = r < whole_rows ? whole_cols : 0; c < cols; c++)
      std::memcpy(panel + (size_t{c} * panel_rows + r) * bytes, rows[r] + size_t{c} * bytes, bytes);
  }
}

using repacks = void (*)(const byte* const* rows, uint32_t count, uint32_t cols, byte* panel);

repacks repack_of(dtype t) {
  switch (t) {
    case dtype::f32:
      return transpose_rows<fours>;
    case dtype::f16:
    case dtype::bf16:
      return transpose_rows<eights>;
    case dtype::q8_0:
      return repack_each<dtype::q8_0, repack_blocks_of_32<dtype::q8_0>>;
    case dtype::q4_0:
      return repack_each<dtype::q4_0, repack_blocks_of_32<dtype::q4_0>>;
    case dtype::q4_1:
      return repack_each<dtype::q4_1, repack_blocks_of_32<dtype::q4_1>>;
    case dtype::q5_0:
      return repack_each<dtype::q5_0, repack_blocks_of_32<dtype::q5_0>>;
    case dtype::q5_1:
      return repack_each<dtype::q5_1, repack_blocks_of_32<dtype::q5_1>>;
    case dtype::q4_k:
      return repack_each<dtype::q4_k, by_rows<repack_q45_k<dtype::q4_k>>>;
    case dtype::q5_k:
      return repack_each<dtype::q5_k, by_rows<repack_q45_k<dtype::q5_k>>>;
    default:
      return repack_each<dtype::q6_k, by_rows<repack_q6_k>>;
  }
}

}  // namespace

void repack_panels(dtype t, uint32_t rows, uint32_t cols, uint32_t first_panel, uint32_t panels,
                   const std::byte* (*row_of)(const void* context, uint32_t r), const void* context,
                   std::byte* destination) {
  size_t bytes = panel_bytes(t, cols);
  repacks repack = repack_of(t);
  for (uint32_t p = first_panel; p < first_panel + panels; p++) {
    const byte* sources[panel_rows];
    uint32_t count = 0;
    for (uint32_t r = p * panel_rows; r < rows && count < panel_rows; r++) {
      sources[count++] = reinterpret_cast<const byte*>(row_of(context, r));
    }
    byte* panel = reinterpret_cast<byte*>(destination) + (p - first_panel) * bytes;
    size_t used = size_t{cols / block_elements(t)} * panel_block_bytes(t);
    if (count < panel_rows) used = 0;
    std::memset(panel + used, 0, bytes - used);
    repack(sources, count, cols, panel);
  }
}

}  // namespace lethe

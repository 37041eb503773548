#pragma once

#include "kernels/matrix.hpp"

// A panel holds 16 rows, all of K, without loss. Lane r of every vector belongs to row r.
//
// Float types: for each k, 16 values as in the file ([K][16]).
//
// Quantized types: for each unit of 32 columns, a record of (in this order)
//   scales    q8_0, q4_0, q5_0: d as f16[16]
//             q4_1, q5_1:       d as f16[16], m as f16[16]
//             q4_k, q5_k:       scale as u8[16], minimum as u8[16], of 6 bits
//             q6_k:             scales of the two half units as int8[16][2]
//   high bits q5_*, q5_k: 64 bytes; bit g of byte i of row r belongs to k = 4g + i
//             q6_k:       128 bytes; bits 2g, 2g+1 of byte i of row r belong to k = 4g + i in the
//                         first 64, to k = 16 + 4g + i in the second
//   numbers   q8_0: 8 vectors; byte i of row r in vector g is q of k = 4g + i, plus 128
//             else: 4 vectors; the low half of byte i of row r in vector g is k = 4g + i, the high
//                   half k = 16 + 4g + i
// K types put a header before each 8 units: q4_k, q5_k: d as f16[16], dmin as f16[16];
// q6_k: d as f16[16]. The panel ends in zeros up to a multiple of 64 bytes.

namespace lethe {

inline constexpr uint32_t unit_columns = 32;

struct unit_facts {
  uint32_t header_bytes;  // before each block of 8 units, K types only
  uint32_t scale_bytes, high_bytes, number_bytes;
};

[[gnu::always_inline]] constexpr unit_facts unit_of(dtype t) {
  switch (t) {
    case dtype::q8_0:
      return {0, 32, 0, 512};
    case dtype::q4_0:
      return {0, 32, 0, 256};
    case dtype::q4_1:
      return {0, 64, 0, 256};
    case dtype::q5_0:
      return {0, 32, 64, 256};
    case dtype::q5_1:
      return {0, 64, 64, 256};
    case dtype::q4_k:
      return {64, 32, 0, 256};
    case dtype::q5_k:
      return {64, 32, 64, 256};
    case dtype::q6_k:
      return {32, 32, 128, 256};
    default:
      return {0, 0, 0, 0};
  }
}

[[gnu::always_inline]] constexpr uint32_t unit_bytes(dtype t) {
  unit_facts f = unit_of(t);
  return f.scale_bytes + f.high_bytes + f.number_bytes;
}

/// Bytes of one panel's block: block_elements(t) columns of 16 rows.
[[gnu::always_inline]] constexpr uint32_t panel_block_bytes(dtype t) {
  if (is_float(t)) return block_bytes(t) * panel_rows;
  return unit_of(t).header_bytes + block_elements(t) / unit_columns * unit_bytes(t);
}

/// Bytes of a panel before segment s of its columns.
[[gnu::always_inline]] constexpr size_t panel_bytes_before(const matrix& m, uint32_t s) {
  return size_t{segment_begin(m.type, m.cols, s) / block_elements(m.type)} *
         panel_block_bytes(m.type);
}

}  // namespace lethe

#pragma once

#include <cstddef>
#include <cstdint>

// The constexpr functions are always inlined: files built for one instruction set use them, and the
// linker must never keep such a file's copy for everybody.

namespace lethe {

/// How the numbers of a weight are stored. Files keep theirs; nothing is requantized.
enum class dtype : uint8_t { f32, f16, bf16, q8_0, q4_0, q4_1, q5_0, q5_1, q4_k, q5_k, q6_k };
inline constexpr uint32_t dtype_count = 11;

struct dtype_facts {
  const char* name;
  uint32_t block;        // elements along K that share scales
  uint32_t block_bytes;  // of one row's block in a file
};

[[gnu::always_inline]] constexpr dtype_facts facts_of(dtype t) {
  constexpr dtype_facts all[dtype_count] = {
      {"f32", 1, 4},      {"f16", 1, 2},      {"bf16", 1, 2},    {"q8_0", 32, 34},
      {"q4_0", 32, 18},   {"q4_1", 32, 20},   {"q5_0", 32, 22},  {"q5_1", 32, 24},
      {"q4_k", 256, 144}, {"q5_k", 256, 176}, {"q6_k", 256, 210}};
  return all[uint8_t(t)];
}
[[gnu::always_inline]] constexpr const char* name_of(dtype t) { return facts_of(t).name; }
[[gnu::always_inline]] constexpr uint32_t block_elements(dtype t) { return facts_of(t).block; }
[[gnu::always_inline]] constexpr uint32_t block_bytes(dtype t) { return facts_of(t).block_bytes; }
[[gnu::always_inline]] constexpr bool is_float(dtype t) { return t <= dtype::bf16; }

/// Rows are stored in panels of 16, so that one output row is one lane of a vector and every
/// instruction set adds in the same order.
inline constexpr uint32_t panel_rows = 16;

/// K is always summed in eight segments, then ((0+1)+(2+3))+((4+5)+(6+7)), whichever thread or
/// rank holds them: the sum does not depend on the cut.
inline constexpr uint32_t segments = 8;

/// Bytes of one panel: 16 rows and all of K. Multiple of 64.
size_t panel_bytes(dtype t, uint32_t cols);
/// Bytes of the whole matrix as panels; the last panel is padded with rows of zeros.
inline size_t matrix_bytes(dtype t, uint32_t rows, uint32_t cols) {
  return size_t{(rows + panel_rows - 1) / panel_rows} * panel_bytes(t, cols);
}

/// A weight as the kernels read it: panels in memory that somebody else owns, 64-byte aligned.
struct matrix {
  dtype type = dtype::f32;
  uint32_t rows = 0, cols = 0;
  const std::byte* panels = nullptr;
};

/// The first column of segment s (s <= 8), always on a block: no block straddles a segment.
[[gnu::always_inline]] constexpr uint32_t segment_begin(dtype t, uint32_t cols, uint32_t s) {
  uint32_t block = block_elements(t);
  return uint32_t(uint64_t{cols / block} * s / segments) * block;
}

/// Whether `parts` ranks can each hold whole segments of K: parts divides 8 and the blocks of K.
[[gnu::always_inline]] constexpr bool cuts_along_k(dtype t, uint32_t cols, uint32_t parts) {
  return segments % parts == 0 && (cols / block_elements(t)) % parts == 0;
}

/// Copies file rows (row-major, `rows` of them, each cols/block blocks) into panels
/// [first_panel, first_panel + panels), the first of them at `destination`; layouts are in
/// panels.hpp. `row_of(context, r)` gives the file bytes of row r, so a caller can permute rows or
/// join several tensors.
void repack_panels(dtype t, uint32_t rows, uint32_t cols, uint32_t first_panel, uint32_t panels,
                   const std::byte* (*row_of)(const void* context, uint32_t r), const void* context,
                   std::byte* destination);

}  // namespace lethe

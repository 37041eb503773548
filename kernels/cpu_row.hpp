#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/draw_row.hpp"
#include "kernels/matrix.hpp"
#include "kernels/x_unit.hpp"

namespace lethe {

/// Activations quantized for integer products on a device: per row and per block of 32 along K
/// value = scale * q, q in [-127, 127]; `sums` are of q per half block (16), since some formats
/// scale by 16. Row m starts at q + m*cols, scales + m*cols/32, sums + m*cols/16.
struct quantized_rows {
  const int8_t* q;
  const float* scales;
  const int16_t* sums;
};

/// The input of a product: m rows; `f` for float weights; for the others `units`, as their layout
/// says, on a CPU, with x_units_beyond behind the last that may be read; `q` on a device. For
/// weights that take them (takes_rounded) `rounded`, in the place of f.
struct activations {
  uint32_t rows = 0;
  const float* f = nullptr;
  size_t stride = 0;  // floats between rows of f
  const x_unit* units = nullptr;
  const x_rounded* rounded = nullptr;
  quantized_rows q{};
};

/// Which part of a matrix a call multiplies: output rows [row_begin, row_end), segments
/// [segment_begin, segment_end) of K. The activations hold only the columns of these segments.
struct product_part {
  uint32_t row_begin, row_end;
  uint32_t segment_begin, segment_end;
};

enum class kv_type : uint8_t { f32, bf16, int8 };

/// Bytes of one number of a key or a value.
[[gnu::always_inline]] constexpr uint32_t kv_number_bytes(kv_type t) {
  return t == kv_type::f32 ? 4 : t == kv_type::bf16 ? 2 : 1;
}

/// Numbers of a key that lie side by side: int8's are multiplied four at once.
[[gnu::always_inline]] constexpr uint32_t kv_key_group(kv_type t) {
  return t == kv_type::int8 ? 4 : 1;
}

/// Tokens whose values lie side by side, number by number: int8's are weighed four at once. A page
/// that doesn't hold fours has rows.
[[gnu::always_inline]] constexpr uint32_t kv_value_group(kv_type t, uint32_t page_tokens) {
  return t == kv_type::int8 && page_tokens % 4 == 0 ? 4 : 1;
}

/// Bytes of one head's key or value for one token; int8: numbers filled up to a multiple of four,
/// and a float scale.
[[gnu::always_inline]] constexpr uint32_t kv_row_bytes(kv_type t, uint32_t head_dim) {
  switch (t) {
    case kv_type::f32:
      return head_dim * 4;
    case kv_type::bf16:
      return head_dim * 2;
    case kv_type::int8:
      return (head_dim + 3) / 4 * 4 + 4;
  }
  return 0;
}

/// The keys and values of one layer and one kv head of one request, in pages. Token t lies in page
/// pages[t / page_tokens] as its row r = t % page_tokens. A value is a row, or four are side by
/// side, a key a column, so that keys side by side are multiplied at once (a device has rows of
/// both: device_kv). With `page` = pool + pages[..] * page_bytes, `size` = kv_number_bytes, `group`
/// = kv_key_group, `rows` = kv_value_group and `row` = kv_row_bytes, without the scale:
///   number d of the key   page + key_offset   + (d / group * page_tokens + r) * group * size
///                                             + d % group * size
///   number d of the value page + value_offset + r / rows * rows * row
///                                             + (d * rows + r % rows) * size
///   int8, the key's scale page + key_offset   + page_tokens * row + r * 4
///   int8, the value's     page + value_offset + page_tokens * row + r * 4
struct kv_view {
  std::byte* pool;
  size_t page_bytes;
  size_t key_offset, value_offset;
  const uint32_t* pages;
  uint32_t page_tokens;
  kv_type type;
  uint32_t head_dim;
};

/// Keys are taken in tiles of this many by absolute position, whatever the page size, so that
/// pages and chunks do not change the sum.
inline constexpr uint32_t attention_tile = 64;
/// A context is summed in spans of so many tiles, by absolute position, each from nothing; they are
/// joined in order, so that they may be summed side by side.
inline constexpr uint32_t span_tiles = 16, span_keys = span_tiles * attention_tile;
/// Weights are relative to the greatest score of a span so far, but for this: sums are brought to
/// another one only where that is greater by more, so that it is seldom. A weight is 2^8 at most.
inline constexpr float raised_by = 8;
/// What a query has of one span: its greatest score so taken, its weights' total, its weighted
/// values.
constexpr uint32_t span_floats(uint32_t head_dim) { return 2 + head_dim; }

/// One span of a part's keys alone, of which some query sees some, to be joined (join_spans) with
/// others: query q's floats are at to + q * stride.
struct attention_span {
  float* to = nullptr;  // null: all keys, and answers
  size_t stride = 0;
  uint32_t index = 0;
};

/// One request's queries against one kv head: `tokens` queries at positions
/// position .. position+tokens-1, each with `heads` query heads that share the kv head.
/// Query (t, h) is at q + t*q_stride + h*head_dim; its output at out + t*out_stride + h*head_dim.
/// Key j is seen by query p if j <= p and (window == 0 or p - j < window).
struct attention_part {
  kv_view kv;
  const float* q;
  size_t q_stride;
  float* out;
  size_t out_stride;
  uint32_t position, tokens, heads;
  uint32_t window;
  float scale;
  float* scratch;  // attention_scratch_floats(tokens, heads, head_dim) floats, 64-byte aligned
  attention_span span = {};
};

size_t attention_scratch_floats(uint32_t tokens, uint32_t heads, uint32_t head_dim);

/// One instruction set's kernels. All rows of cpu_rows give the same bits: every sum has one order,
/// every multiply-add is fused, exp is ours. No kernel allocates, none spawns threads.
struct cpu_row {
  const char* name;
  /// Rows of x that lie together as x_units, where there are many (layout_of_x).
  uint32_t x_tile_rows;
  /// y[m*y_stride + (n - row_begin)] for n in the part: the part's segments, each summed in order
  /// from its first column, joined by the tree.
  void (*matmul)(const matrix& w, const product_part& part, const activations& x, float* y,
                 size_t y_stride);
  /// Quantizes elements [begin, end) of `rows` rows that lie back to back in x, `cols` wide (all
  /// but `rows` are multiples of 32), each unit to its place.
  void (*quantize)(const float* x, uint32_t rows, uint32_t cols, size_t begin, size_t end,
                   x_unit* to);
  /// The same, rounded to bfloat16, to where its own products want it; null: no weight takes it so.
  void (*round)(const float* x, uint32_t rows, uint32_t cols, size_t begin, size_t end,
                x_rounded* to);
  /// Row r of w as floats (token embedding).
  void (*row_to_float)(const matrix& w, uint32_t r, float* y);
  /// y = x / sqrt(mean(x^2) + eps) * gain, per row of `cols`; x and y may be the same.
  void (*rms_norm)(const float* x, size_t x_stride, const float* gain, float* y, size_t y_stride,
                   uint32_t rows, uint32_t cols, float eps);
  /// Rotates pairs (i, i + rotary/2) of each head in place. cosines and sines are [rows][rotary/2].
  void (*rope)(float* x, size_t stride, uint32_t rows, uint32_t heads, uint32_t head_dim,
               uint32_t rotary, const float* cosines, const float* sines);
  /// Writes keys and values of `tokens` tokens starting at `position`: head's key of token t is at
  /// k + t*stride.
  void (*kv_store)(const kv_view& kv, uint32_t position, uint32_t tokens, const float* k,
                   const float* v, size_t stride);
  void (*attend)(const attention_part& part);
  /// A query's answer, from its spans' floats, `count` spans in order and back to back.
  void (*join_spans)(kv_type type, const float* spans, uint32_t count, uint32_t head_dim,
                     float* out);
  /// y = silu(gate) * up.
  void (*silu_multiply)(const float* gate, const float* up, float* y, size_t n);
  /// y += x.
  void (*add)(const float* x, float* y, size_t n);
  /// y[r] += bias for each row.
  void (*add_bias)(const float* bias, float* y, size_t stride, uint32_t rows, uint32_t cols);
  draw_row draw;
};

/// Whether the row's products with w round x.
[[gnu::always_inline]] inline bool takes_rounded(const cpu_row& row, const matrix& w) {
  return row.round != nullptr && w.type == dtype::bf16 && w.cols % (segments * 32) == 0;
}

/// The kernels of the declared arithmetic "tensor" on cores: amx, but that products with bf16
/// weights and attention over bf16 keys and values round what they multiply to bfloat16, in tiles.
/// A sum has one order here, too (docs/decisions/0059-tensor-arithmetic-on-cores.md).
extern const cpu_row amx_tensor;
/// "reference", "avx2", "zen3", "avxvnni", "avx512", "avx512vnni", "zen4", "amx": those this build
/// has, best last.
std::span<const cpu_row* const> cpu_rows();
/// Whether this machine can run the row. Asked about amx and amx_tensor it asks Linux for their
/// registers, for the whole process: stacks for signals have to be larger from then on.
bool runs_here(const cpu_row& row);
/// The best row that runs here.
const cpu_row& best_cpu_row();
/// The row of that name, one with bits of its own, too, or null.
const cpu_row* find_cpu_row(const char* name);

}  // namespace lethe

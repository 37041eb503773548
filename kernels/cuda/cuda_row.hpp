#pragma once

#include <span>

#include "kernels/cpu_row.hpp"
#include "kernels/draw_policy.hpp"

struct CUstream_st;

namespace lethe {

/// A cudaStream_t and a cudaError_t (0: launched), for code that sees no header of CUDA's.
using device_stream = CUstream_st*;
using device_error = int;

/// Consecutive tokens of one request in a step: their first lies in row `row` of the step's rows
/// and stands at `position` of its request, whose page table begins at `first_page` of the step's.
/// Attention writes to rows from `out_row` on. A run of no tokens is passed over, so that a graph
/// made for so many requests serves fewer.
struct token_run {
  uint32_t row, out_row, position, tokens, first_page;
};

/// One layer's keys and values on a device, in pages as kv_view has them, but both are rows, each
/// with its scale: row r of kv head h begins at key_offset (or value_offset) + head_bytes * h +
/// r * kv_row_bytes and ends, if int8, in its scale.
struct device_kv {
  std::byte* pool;
  size_t page_bytes;
  size_t key_offset, value_offset;
  size_t head_bytes;
  const uint32_t* pages;  // of all runs
  uint32_t page_tokens;
  kv_type type;
  uint32_t head_dim;
};

/// What attention over a layer reads and writes, all on the device. Query head h of a row is at
/// q + row * q_stride + h * head_dim and reads kv head (first_head + h) / group, where first_head
/// is less than group.
struct device_attention {
  device_kv kv;
  const token_run* runs;
  uint32_t run_count;
  uint32_t tokens_max;  // of a run; 1: a decode, which is split along the context
  const float* q;
  size_t q_stride;
  float* out;
  size_t out_stride;
  uint32_t heads, kv_heads;
  uint32_t first_head, group;
  uint32_t window;
  float scale;
  uint32_t tiles_max;  // a decode's: attention_tiles of its longest run
  float* scratch;      // a decode's: decode_scratch_floats
};

/// A weight on a device, or what a rank has of it: `of` says how large all of it is, and points to
/// panel `first_panel`; of each panel the columns of segments [segment_begin, segment_end) are
/// there, and the next begins at a multiple of 64 bytes.
struct device_matrix {
  matrix of;
  uint32_t first_panel = 0;
  uint32_t segment_begin = 0, segment_end = segments;
};

/// Rows that a kernel makes: y = sum, plus the bias of its column, and that added to what `onto`
/// has in its place; null: nothing of the kind. Nobody writes to `onto` meanwhile.
struct device_output {
  float* y;
  size_t stride;  // of y and onto
  const float* bias = nullptr;
  const float* onto = nullptr;
};

/// The part is one that is there.
struct device_product {
  device_matrix w;
  product_part part;
  device_output to;
};
/// Of one type, with the same rows, in one kernel; with quantized weights only up to so many rows.
inline constexpr uint32_t products_together = 3, quantized_together = 64;

/// Activations as a kernel leaves them: floats, quantized, or both; null: not so. Quantized rows
/// lie back to back and are whole units of 32.
struct device_activations {
  float* f = nullptr;
  size_t stride = 0;  // of f
  int8_t* q = nullptr;
  float* scales = nullptr;
  int16_t* sums = nullptr;
};

/// What a layer's projections made of a step's rows, one head after the other. Queries and keys are
/// normed, where there is a gain, and turned: queries where they lie, keys on their way to their
/// pages. Values go as they are.
struct device_heads {
  device_kv kv;
  const token_run* runs;
  uint32_t run_count;
  uint32_t tokens_max;  // of a run
  float* q;
  size_t q_stride;
  const float *k, *v;
  size_t kv_stride;
  uint32_t heads, kv_heads;
  const float *q_gain, *k_gain;  // [head_dim], or null
  float eps;
  uint32_t rotary;
  const float *cosines, *sines;  // [rows][rotary / 2]
};

/// Columns of `rows` rows in `parts` parts, as part_of cuts their units of `unit` columns: part p
/// has its columns of all rows, back to back, at x + p * stride.
struct column_parts {
  const float* x;
  size_t stride;
  uint32_t rows, cols;
  uint32_t parts, unit;
};

/// exact: the bits of the CPU. tensor: products with f16 and bf16 weights, and attention, by tensor
/// cores, which round what they multiply; as independent of chunks, company, pages and cuts.
enum class arithmetic : uint8_t { exact, tensor };

/// Tiles of keys that a query at `position` sees some of.
constexpr uint32_t attention_tiles(uint32_t position, uint32_t window) {
  uint32_t first = window == 0 || position < window ? 0 : position + 1 - window;
  return position / attention_tile - first / attention_tile + 1;
}

/// Spans that so many tiles can lie in.
constexpr uint32_t attention_spans(uint32_t tiles) {
  return (tiles + span_tiles - 2) / span_tiles + 1;
}
/// The largest head_dim that it attends with; larger ones are attended to exactly.
inline constexpr uint32_t tensor_head_max = 256;

/// Whether a decode's scores are kept for another kernel.
constexpr bool keeps_scores(arithmetic how, uint32_t head_dim) {
  return how == arithmetic::exact || head_dim > tensor_head_max;
}
constexpr size_t decode_scratch_floats(arithmetic how, uint32_t runs, uint32_t heads,
                                       uint32_t head_dim, uint32_t tiles_max) {
  size_t spans = size_t{attention_spans(tiles_max)} * span_floats(head_dim);
  size_t scores = keeps_scores(how, head_dim) ? size_t{tiles_max} * attention_tile : 0;
  return runs * heads * (spans + scores);
}

/// Draws from rows of logits that begin `stride` apart, and their scratch, which holds what derives
/// from the logits. Nothing is known of it before.
struct device_draws {
  const float* logits;
  size_t stride;
  uint32_t vocab;  // draw_vocab_max at most
  const row_draw* draws;
  uint32_t count;
  float* weights;    // [count][draw_whole(vocab)]
  uint32_t* places;  // [count][2][draw_whole(vocab)]
  uint32_t* ids;     // [count]
};
constexpr size_t draw_whole(size_t vocab) { return draw_blocks(vocab) * draw_block; }
/// Each block of them takes eight bytes of what a launch may share.
inline constexpr uint32_t draw_vocab_max = 6000 * draw_block;

/// cpu_row's kernels on a device, with its bits if they are exact: pointers are the device's but
/// for the structs themselves, the call returns when the work is queued on the stream. No kernel
/// allocates or synchronises, so a step of them can be captured as a graph. Parameters mean what
/// cpu_row says.
struct cuda_row {
  const char* name;
  lethe::arithmetic arithmetic;
  /// Products of the same columns of the same rows. Quantized x starts at multiples of 16 bytes.
  device_error (*matmul)(std::span<const device_product> all, const activations& x,
                         device_stream stream);
  device_error (*quantize)(const float* x, size_t stride, uint32_t rows, uint32_t cols,
                           const device_activations& to, device_stream stream);
  /// Row ids[i] of w to y + i * y_stride.
  device_error (*rows_to_float)(const matrix& w, const uint32_t* ids, uint32_t count, float* y,
                                size_t y_stride, device_stream stream);
  /// `to.f` may be x.
  device_error (*rms_norm)(const float* x, size_t x_stride, const float* gain,
                           const device_activations& to, uint32_t rows, uint32_t cols, float eps,
                           device_stream stream);
  device_error (*place_heads)(const device_heads& h, device_stream stream);
  device_error (*attend)(const device_attention& a, device_stream stream);
  /// Rows back to back. `to.f` may be gate.
  device_error (*silu_multiply)(const float* gate, const float* up, const device_activations& to,
                                size_t n, device_stream stream);
  /// Sums of x[r * stride + i] for r < count <= segments, added in the order of segments; rows
  /// back to back.
  device_error (*add_tree)(const float* x, size_t stride, uint32_t count, const device_output& to,
                           uint32_t rows, uint32_t cols, device_stream stream);
  /// The parts' rows as whole ones.
  device_error (*join_columns)(const column_parts& from, const device_output& to,
                               device_stream stream);
  /// ids[i] is what the host would draw (runtime/batch/drawing.hpp).
  device_error (*draw)(const device_draws& d, device_stream stream);
  /// Zeros; start and size are multiples of 16.
  device_error (*wipe)(std::byte* begin, size_t bytes, device_stream stream);
};

/// What nvcc compiled; a build without it has none.
extern const cuda_row cuda, cuda_tensor;

}  // namespace lethe

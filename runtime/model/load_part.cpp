#include "runtime/model/load_part.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "runtime/model/quantize.hpp"

namespace lethe {
namespace {

size_t row_bytes(dtype type, uint32_t columns) {
  return size_t{columns} / block_elements(type) * block_bytes(type);
}

/// The file's rows in the model's order, from one of their columns on.
struct row_source {
  const raw_tensor* from;
  uint32_t head_dim;
  size_t row_bytes, skipped;

  row_source(const raw_tensor& t, uint32_t head, uint32_t first_column)
      : from(&t),
        head_dim(head),
        row_bytes(lethe::row_bytes(t.type, t.cols)),
        skipped(lethe::row_bytes(t.type, first_column)) {}

  const std::byte* row(uint32_t r) const {
    uint32_t at = from->interleaved_rope ? unpermuted_row(r, head_dim) : r;
    return from->data.data() + at * row_bytes + skipped;
  }
  static const std::byte* row_of(const void* context, uint32_t r) {
    return static_cast<const row_source*>(context)->row(r);
  }
};

/// One panel's rows, converted.
struct converted_rows {
  uint32_t first;
  size_t row_bytes;
  std::vector<std::byte> bytes;

  static const std::byte* row_of(const void* context, uint32_t r) {
    auto rows = static_cast<const converted_rows*>(context);
    return rows->bytes.data() + (r - rows->first) * rows->row_bytes;
  }
};

void load_converted(const row_source& from, const placed_tensor& as, const panel_part& part,
                    std::byte* to) {
  const uint32_t columns = part.columns();
  std::vector<float> row(columns);
  converted_rows rows{.row_bytes = row_bytes(as.type, columns)};
  rows.bytes.resize(panel_rows * rows.row_bytes);
  for (uint32_t p = part.panel_begin; p < part.panel_end; ++p) {
    rows.first = p * panel_rows;
    uint32_t end = std::min(as.rows, rows.first + panel_rows);
    for (uint32_t r = rows.first; r < end; ++r) {
      dequantize_row(from.from->type, from.row(r), row.data(), columns);
      quantize_row(as.type, row.data(), columns,
                   rows.bytes.data() + (r - rows.first) * rows.row_bytes);
    }
    repack_panels(as.type, as.rows, columns, p, 1, converted_rows::row_of, &rows, to);
    to += panel_bytes(as.type, columns);
  }
}

}  // namespace

void load_panels(const raw_tensor& from, const placed_tensor& as, uint32_t head_dim,
                 const panel_part& part, std::byte* to) {
  row_source rows(from, head_dim, part.column_begin);
  if (as.type != from.type) return load_converted(rows, as, part, to);
  repack_panels(as.type, as.rows, part.columns(), part.panel_begin, part.panels(),
                row_source::row_of, &rows, to);
}

void load_floats(const raw_tensor& from, uint32_t head_dim, uint32_t first, uint32_t count,
                 std::byte* to) {
  std::vector<float> read(from.cols);
  dequantize_row(from.type, from.data.data(), read.data(), from.cols);
  for (uint32_t i = first; i < first + count; ++i) {
    float value = read[from.interleaved_rope ? unpermuted_row(i, head_dim) : i];
    std::memcpy(to + (i - first) * sizeof(float), &value, sizeof value);
  }
}

}  // namespace lethe

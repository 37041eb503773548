#include "parallel/weight_parts.hpp"

#include "kernels/panels.hpp"

namespace lethe {

product_part weight_parts::spread(const matrix& m) const {
  uint32_t rank = part_.tensor_rank, ranks = part_.tensor_size;
  if (!along_k(m)) return rows(panels_of(m.rows, rank, ranks));
  range mine = part_of(segments, rank, ranks);
  return {0, m.rows, mine.begin, mine.end};
}

weight_piece piece_of(const matrix& m, const product_part& part) {
  size_t panel = panel_bytes(m.type, m.cols);
  size_t first = part.row_begin / panel_rows;
  size_t count =
      part.row_begin == part.row_end ? 0 : (part.row_end + panel_rows - 1) / panel_rows - first;
  const std::byte* from = m.panels + first * panel;
  if (part.segment_end - part.segment_begin == segments) return {from, count * panel};
  size_t begin = panel_bytes_before(m, part.segment_begin);
  return {from + begin, panel_bytes_before(m, part.segment_end) - begin, panel, count};
}

}  // namespace lethe

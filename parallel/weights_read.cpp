#include "parallel/weights_read.hpp"

#include "kernels/panels.hpp"

namespace lethe {
namespace {

class reader {
 public:
  explicit reader(const shard_part& part) : part_(part) {}

  /// Whole panels that hold those rows.
  void rows(const matrix& m, range r) {
    if (r.size() == 0) return;
    uint64_t bytes = panel_bytes(m.type, m.cols);
    uint64_t first = r.begin / panel_rows, end = (r.end + panel_rows - 1) / panel_rows;
    all_.emplace_back(m.panels + first * bytes, (end - first) * bytes);
  }
  void all_rows(const matrix& m) { rows(m, {0, m.rows}); }
  /// A product whose K is spread over the tensor ranks: some columns, or else some rows.
  void spread(const matrix& m) {
    uint32_t rank = part_.tensor_rank, ranks = part_.tensor_size;
    if (ranks == 1 || !cuts_along_k(m.type, m.cols, ranks))
      return rows(m, panels_of(m.rows, rank, ranks));
    range mine = part_of(segments, rank, ranks);
    uint64_t begin = at(m, segment_begin(m.type, m.cols, mine.begin));
    uint64_t end = at(m, segment_begin(m.type, m.cols, mine.end));
    for (uint32_t p = 0; p * panel_rows < m.rows; ++p)
      all_.emplace_back(m.panels + p * panel_bytes(m.type, m.cols) + begin, end - begin);
  }
  std::vector<bytes_view> take() { return std::move(all_); }

 private:
  static uint64_t at(const matrix& m, uint32_t column) {
    return uint64_t{column / block_elements(m.type)} * panel_block_bytes(m.type);
  }
  const shard_part& part_;
  std::vector<bytes_view> all_;
};

}  // namespace

std::vector<bytes_view> reads_of(const model_weights& weights, const shard_part& part) {
  reader r(part);
  uint32_t d = weights.shape.head_dim;
  if (part.first()) r.all_rows(weights.embed);
  for (uint32_t l = part.layers.begin; l < part.layers.end; ++l) {
    const auto& [attention, mlp] = weights.layers[l];
    r.rows(attention.q, {part.heads.begin * d, part.heads.end * d});
    for (const matrix* m : {&attention.k, &attention.v})
      r.rows(*m, {part.kv_heads.begin * d, part.kv_heads.end * d});
    r.spread(attention.o);
    for (const matrix* m : {&mlp.gate, &mlp.up}) r.rows(*m, part.ffn);
    r.spread(mlp.down);
  }
  if (part.last()) r.rows(weights.head, part.vocab);
  return r.take();
}

}  // namespace lethe

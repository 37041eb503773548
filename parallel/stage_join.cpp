#include <cstring>

#include "parallel/stage.hpp"

// The products whose K is spread over the tensor ranks: o and down. Where the ranks hold whole
// segments of K, each multiplies its own and the reduction completes the tree. Elsewhere every
// rank gathers the whole input and multiplies some output rows. Same bits either way.

namespace lethe {

range stage::cols_of(const matrix& m, uint32_t rank) const {
  return part_of(m.cols, rank, part_.tensor_size);
}

/// Where this rank's columns of the input of m are to be written, rows back to back: its own
/// buffer, or its place among all ranks' columns.
float* stage::room_for(const walk& w, const matrix& m, float* own) const {
  if (along_k(m)) return own;
  return b_.gathered + size_t{w.rows} * cols_of(m, part_.tensor_rank).begin;
}

bool stage::join(walk& w, const matrix& m, const float* bias, const float* own, uint64_t& time) {
  w.pending = &m;
  w.pending_bias = bias;
  if (!along_k(m)) return join_gathered(w, m, time);
  uint32_t rank = part_.tensor_rank, ranks = part_.tensor_size;
  range mine = part_of(segments, rank, ranks);
  product p[] = {{&m, {0, m.rows}, mine, nullptr, b_.joined, m.rows}};
  multiply(w, p, input(w.rows, own, cols_of(m, rank).size()));
  meet(w, time);
  if (ranks == 1) return true;
  return talk(w, [&] { return tensor_.all_reduce({b_.joined, size_t{w.rows} * m.rows}); });
}

bool stage::join_gathered(walk& w, const matrix& m, uint64_t& time) {
  if (!gather(w, b_.gathered, [&](uint32_t rank) { return cols_of(m, rank); })) return false;
  unpack(w, m);
  meet(w, time);
  auto rows_of = [&](uint32_t rank) { return panels_of(m.rows, rank, part_.tensor_size); };
  range mine = rows_of(part_.tensor_rank);
  float* y = b_.joined + size_t{w.rows} * mine.begin;
  product p[] = {{&m, mine, {0, segments}, nullptr, y, mine.size()}};
  multiply(w, p, input(w.rows, b_.wide, m.cols));
  meet(w, time);
  return gather(w, b_.joined, rows_of);
}

/// Everybody's columns, each rank's rows back to back, rank after rank.
template <class RangeOf>
bool stage::gather(const walk& w, float* all, RangeOf&& range_of) {
  return talk(w, [&] {
    size_t count = 0;
    for (uint32_t rank = 0; rank < part_.tensor_size; ++rank) {
      range r = range_of(rank);
      extents_[rank] = {size_t{w.rows} * r.begin, size_t{w.rows} * r.size()};
      count += extents_[rank].count;
    }
    return tensor_.all_gather({all, count}, extents_);
  });
}

/// From rank after rank to row after row, by rows.
void stage::unpack(const walk& w, const matrix& m) {
  range mine = share(w, w.rows);
  for (uint32_t rank = 0; rank < part_.tensor_size; ++rank) {
    range cols = cols_of(m, rank);
    const float* from = b_.gathered + size_t{w.rows} * cols.begin;
    for (size_t r = mine.begin; r < mine.end; ++r)
      std::memcpy(b_.wide + r * m.cols + cols.begin, from + r * cols.size(),
                  cols.size() * sizeof(float));
  }
  make_forms(w, forms_for({&m}), b_.wide, m.cols, size_t{mine.begin} * m.cols,
             size_t{mine.end} * m.cols);
}

void stage::add_pending(const walk& w, uint32_t row) {
  if (w.pending == nullptr) return;
  uint32_t cols = w.pending->rows;
  uint32_t parts = along_k(*w.pending) ? 1 : part_.tensor_size;
  for (uint32_t i = 0; i < parts; ++i) {
    range part = parts == 1 ? range{0, cols} : panels_of(cols, i, parts);
    float* from = b_.joined + size_t{w.rows} * part.begin + size_t{row} * part.size();
    if (w.pending_bias)
      row_.add_bias(w.pending_bias + part.begin, from, part.size(), 1, part.size());
    row_.add(from, w.x + size_t{row} * cols + part.begin, part.size());
  }
}

}  // namespace lethe

#include "parallel/weight_cuts.hpp"

#include <algorithm>

#include "kernels/panels.hpp"
#include "runtime/base/check.hpp"

namespace lethe {
namespace {

constexpr size_t line_bytes = 64;

/// The fewest columns that fill whole lines: of every type's blocks two do.
uint32_t columns_at_once(const placed_weight& w) {
  return w.vector ? line_bytes / sizeof(float) : 2 * block_elements(w.of.type);
}

/// Of one panel's columns; a vector has one panel.
size_t bytes_of(const placed_weight& w, uint32_t columns) {
  if (!w.vector) return panel_bytes(w.of.type, columns);
  return (columns * sizeof(float) + line_bytes - 1) / line_bytes * line_bytes;
}

}  // namespace

size_t placed_weight::bytes() const { return part.panels() * bytes_of(*this, part.columns()); }

void weight_cuts::begin_next(size_t at) {
  at_ = at;
  if (done()) return;
  panel_ = all_[at].part.panel_begin, column_ = all_[at].part.column_begin;
}

size_t weight_cuts::offset() const {
  const placed_weight& w = all_[at_];
  return w.offset + (panel_ - w.part.panel_begin) * bytes_of(w, w.part.columns()) +
         bytes_of(w, column_ - w.part.column_begin);
}

/// Whole panels if one fits, else columns of one.
std::optional<panel_part> weight_cuts::fitting(size_t room) const {
  const placed_weight& w = all_[at_];
  const panel_part& part = w.part;
  const size_t panel = bytes_of(w, part.columns());
  if (column_ == part.column_begin && panel <= room) {
    auto panels = uint32_t(std::min<size_t>(room / panel, part.panel_end - panel_));
    return panel_part{panel_, panel_ + panels, part.column_begin, part.column_end};
  }
  const uint32_t unit = columns_at_once(w);
  size_t columns = std::min<size_t>(room / bytes_of(w, unit) * unit, part.column_end - column_);
  if (columns == 0) return {};
  return panel_part{panel_, panel_ + 1, column_, column_ + uint32_t(columns)};
}

void weight_cuts::advance(const panel_part& taken) {
  const panel_part& part = all_[at_].part;
  const bool row_ends = taken.column_end == part.column_end;
  panel_ = row_ends ? taken.panel_end : panel_;
  column_ = row_ends ? part.column_begin : taken.column_end;
  if (panel_ == part.panel_end) begin_next(at_ + 1);
}

std::optional<weight_read> weight_cuts::next(size_t room) {
  check(!done());
  auto part = fitting(room);
  if (!part) return {};
  const placed_weight& w = all_[at_];
  weight_read made{.from = &w,
                   .part = *part,
                   .offset = offset(),
                   .bytes = part->panels() * bytes_of(w, part->columns()),
                   .last = false};
  const size_t before = at_;
  advance(*part);
  made.last = at_ != before;
  return made;
}

}  // namespace lethe

#pragma once

#include <cstddef>

#include "parallel/weights.hpp"

namespace lethe {

/// Some panels of a matrix and of each the same columns, which begin and end at blocks of K.
struct panel_part {
  uint32_t panel_begin = 0, panel_end = 0;
  uint32_t column_begin = 0, column_end = 0;

  uint32_t panels() const { return panel_end - panel_begin; }
  uint32_t columns() const { return column_end - column_begin; }
};

/// Where a model's weights come from on their way to a device. Several threads read at once.
class weight_source {
 public:
  virtual ~weight_source() = default;

  /// Their forms, and addresses by which they are asked for: what has the same address is the same.
  /// There may be no memory at these.
  virtual const model_weights& weights() const = 0;
  /// Writes the part's panels back to back, each of panel_bytes(type, columns).
  virtual void read(const matrix& from, const panel_part& part, std::byte* to) const = 0;
  /// So many floats of a vector, from one of them on.
  virtual void read(const float* from, size_t count, std::byte* to) const = 0;
  /// Nothing of it is read again soon.
  virtual void release(const matrix& from) const = 0;
};

}  // namespace lethe

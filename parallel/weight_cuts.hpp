#pragma once

#include <optional>
#include <vector>

#include "parallel/weight_source.hpp"

namespace lethe {

/// A weight, or what a rank has of it, and where it goes on a device.
struct placed_weight {
  matrix of;                      // or
  const float* vector = nullptr;  // of part.columns() floats
  panel_part part;
  size_t offset = 0;

  size_t bytes() const;
};

/// A part of it that is read at once.
struct weight_read {
  const placed_weight* from;
  panel_part part;
  size_t offset, bytes;  // on the device
  bool last;             // of this weight
};

/// Cuts weights into reads in the order in which they are placed, each as large as there is room,
/// inside a panel, too.
class weight_cuts {
 public:
  /// Any read has a begin that fits into so much.
  static constexpr size_t room_least = 8192;

  explicit weight_cuts(const std::vector<placed_weight>& all) : all_(all) { begin_next(0); }

  bool done() const { return at_ == all_.size(); }
  /// Where the next read goes.
  size_t offset() const;
  /// None where nothing fits. Whatever is behind it on the device begins at a multiple of 64.
  std::optional<weight_read> next(size_t room);

 private:
  void begin_next(size_t at);
  std::optional<panel_part> fitting(size_t room) const;
  void advance(const panel_part& taken);

  const std::vector<placed_weight>& all_;
  size_t at_ = 0;
  uint32_t panel_ = 0, column_ = 0;
};

}  // namespace lethe

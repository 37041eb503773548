#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "parallel/cut.hpp"
#include "runtime/model/load_layout.hpp"

namespace lethe {

/// Half-open ranges of bytes in a layout.
struct byte_range {
  uint64_t begin = 0, end = 0;
  bool operator==(const byte_range&) const = default;
};

/// Which bytes of a layout somebody will read, in order and without overlap.
class needed_bytes {
 public:
  explicit needed_bytes(std::vector<byte_range> all);

  uint64_t total() const { return total_; }
  const std::vector<byte_range>& all() const { return all_; }
  /// Those of a range, each by `use(byte_range)`.
  template <class Use>
  void within(byte_range r, Use&& use) const {
    auto at = std::ranges::upper_bound(all_, r.begin, {}, &byte_range::end);
    for (; at != all_.end() && at->begin < r.end; ++at)
      use(byte_range{std::max(at->begin, r.begin), std::min(at->end, r.end)});
  }
  uint64_t count_within(byte_range r) const {
    uint64_t bytes = 0;
    within(r, [&](byte_range part) { bytes += part.end - part.begin; });
    return bytes;
  }

 private:
  std::vector<byte_range> all_;
  uint64_t total_ = 0;
};

/// Some ranks of a cut.
struct model_share {
  cut ranks;
  std::vector<uint32_t> of;  // none: all
};

/// What these ranks read, and every vector, where a model is laid out at `base`. There need be no
/// memory.
result<needed_bytes> needed_of(const model_shape& shape, const load_layout& layout,
                               const model_share& share, const std::byte* base);

}  // namespace lethe

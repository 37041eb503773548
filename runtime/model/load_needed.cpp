#include "runtime/model/load_needed.hpp"

namespace lethe {

needed_bytes::needed_bytes(std::vector<byte_range> all) {
  std::ranges::sort(all, {}, &byte_range::begin);
  for (const byte_range& r : all) {
    if (r.begin == r.end) continue;
    if (!all_.empty() && r.begin <= all_.back().end)
      all_.back().end = std::max(all_.back().end, r.end);
    else
      all_.push_back(r);
  }
  for (const byte_range& r : all_) total_ += r.end - r.begin;
}

}  // namespace lethe

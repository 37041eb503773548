#include "runtime/model/load_needed.hpp"

#include "parallel/weights_read.hpp"

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

result<needed_bytes> needed_of(const model_shape& shape, const load_layout& layout,
                               const model_share& share, const std::byte* base) {
  if (share.of.empty()) return needed_bytes({{0, layout.bytes}});
  if (auto fits = check_cut(shape, share.ranks); !fits) return fits.why();
  std::vector<byte_range> all;
  for (const placed_tensor& t : layout.tensors)
    if (t.is_vector) all.push_back({t.offset, t.offset + t.bytes});
  const model_weights weights = weights_at(shape, layout, base);
  for (uint32_t rank : share.of) {
    auto part = part_for(shape, share.ranks, rank / share.ranks.tensor, rank % share.ranks.tensor);
    for (bytes_view read : reads_of(weights, part)) {
      auto begin = uint64_t(read.data() - base);
      all.push_back({begin, begin + read.size()});
    }
  }
  return needed_bytes(std::move(all));
}

}  // namespace lethe

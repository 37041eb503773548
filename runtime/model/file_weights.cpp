#include "runtime/model/file_weights.hpp"

#include <algorithm>

#include "runtime/base/check.hpp"
#include "runtime/model/load_part.hpp"

namespace lethe {

result<std::unique_ptr<file_weights>> file_weights::open(const checkpoint& from,
                                                         std::optional<dtype> quantize) {
  auto layout = plan_layout(from.tensors(), quantize);
  if (!layout) return layout.why();
  auto addresses = reserved_addresses::make(layout->bytes);
  if (!addresses) return addresses.why();
  return std::unique_ptr<file_weights>(
      new file_weights(from, *std::move(layout), *std::move(addresses)));
}

result<uint64_t> file_weights::bytes_of(const model_share& share) const {
  auto needed = needed_of(from_.shape(), layout_, share, addresses_.begin());
  if (!needed) return needed.why();
  return needed->total();
}

uint64_t file_weights::offset_of(const void* address) const {
  auto offset = uint64_t(static_cast<const std::byte*>(address) - addresses_.begin());
  check(offset < layout_.bytes);
  return offset;
}

/// Tensors lie in the layout one behind the other.
size_t file_weights::tensor_at(uint64_t offset) const {
  auto behind = std::ranges::upper_bound(layout_.tensors, offset, {}, &placed_tensor::offset);
  return size_t(behind - layout_.tensors.begin()) - 1;
}

void file_weights::read(const matrix& from, const panel_part& part, std::byte* to) const {
  const size_t i = tensor_at(offset_of(from.panels));
  load_panels(from_.tensors()[i], layout_.tensors[i], from_.shape().head_dim, part, to);
}

void file_weights::read(const float* from, size_t count, std::byte* to) const {
  const uint64_t offset = offset_of(from);
  const size_t i = tensor_at(offset);
  const placed_tensor& t = layout_.tensors[i];
  auto first = uint32_t((offset - t.offset) / sizeof(float));
  check(t.is_vector && first + count <= t.cols);
  load_floats(from_.tensors()[i], from_.shape().head_dim, first, uint32_t(count), to);
}

void file_weights::release(const matrix& from) const {
  from_.release(from_.tensors()[tensor_at(offset_of(from.panels))]);
}

}  // namespace lethe

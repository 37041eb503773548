#pragma once

#include "parallel/weight_source.hpp"
#include "runtime/model/checkpoint.hpp"
#include "runtime/model/load_layout.hpp"
#include "runtime/model/load_memory.hpp"
#include "runtime/model/load_needed.hpp"

namespace lethe {

/// A model's weights as they lie in its mapped files, converted and repacked as they are read: what
/// `loaded_model` would hold, of which nothing is in memory. Where weights() points nobody may
/// read. A file that has become shorter since it was opened ends whoever reads, by SIGBUS.
class file_weights final : public weight_source {
 public:
  /// `from` outlives it; `quantize` as load_options says.
  static result<std::unique_ptr<file_weights>> open(const checkpoint& from,
                                                    std::optional<dtype> quantize);

  const model_weights& weights() const override { return weights_; }
  /// What the memory of a host takes of them that loads a share.
  result<uint64_t> bytes_of(const model_share& share) const;
  void read(const matrix& from, const panel_part& part, std::byte* to) const override;
  void read(const float* from, size_t count, std::byte* to) const override;
  void release(const matrix& from) const override;

 private:
  file_weights(const checkpoint& from, load_layout layout, reserved_addresses addresses)
      : from_(from),
        layout_(std::move(layout)),
        addresses_(std::move(addresses)),
        weights_(weights_at(from.shape(), layout_, addresses_.begin())) {}
  uint64_t offset_of(const void* address) const;
  size_t tensor_at(uint64_t offset) const;

  const checkpoint& from_;
  const load_layout layout_;
  const reserved_addresses addresses_;
  const model_weights weights_;
};

}  // namespace lethe

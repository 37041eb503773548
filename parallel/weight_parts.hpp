#pragma once

#include "kernels/cpu_row.hpp"
#include "parallel/cut.hpp"

namespace lethe {

/// Which rows and segments of each weight a rank multiplies, and so has.
class weight_parts {
 public:
  weight_parts(const model_shape& shape, const shard_part& part)
      : part_(part), head_dim_(shape.head_dim) {}

  product_part q() const { return rows(times_head_dim(part_.heads)); }
  product_part kv() const { return rows(times_head_dim(part_.kv_heads)); }
  product_part ffn() const { return rows(part_.ffn); }
  product_part vocab() const { return rows(part_.vocab); }
  /// Of o and down, whose K is spread over the tensor ranks: some segments, or else some rows.
  product_part spread(const matrix& m) const;
  bool along_k(const matrix& m) const { return cuts_along_k(m.type, m.cols, part_.tensor_size); }

 private:
  static product_part rows(range r) { return {r.begin, r.end, 0, segments}; }
  range times_head_dim(range heads) const {
    return {heads.begin * head_dim_, heads.end * head_dim_};
  }

  shard_part part_;
  uint32_t head_dim_;
};

/// `count` stretches of memory, each `pitch` behind the one before.
struct weight_piece {
  const std::byte* from;
  size_t bytes, pitch = 0, count = 1;
};

/// Where the panels of a part lie, or what of each panel the part has.
weight_piece piece_of(const matrix& m, const product_part& part);

}  // namespace lethe

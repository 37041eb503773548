#pragma once

#include "kernels/cuda/matmul_join.inl"

namespace lethe::device {

/// A block as those see it that begin at `first` of the launch's.
template <class Block>
struct later_block : Block {
  uint32_t first;
  LETHE_BODY uint32_t x() const { return Block::x() - first; }
};

/// Products of the same rows of x, one behind the other along the grid: what one of them leaves of
/// the device, the next one takes.
template <class Product>
struct products {
  static constexpr uint32_t threads = Product::threads;
  static constexpr uint32_t side_by_side = blocks_side_by_side<Product>();
  static constexpr bool early = comes_early<Product>();
  uint32_t count = 0;
  uint32_t ends[products_together] = {};  // blocks of each and those before
  Product of[products_together] = {};

  void add(const Product& p) {
    ends[count] = shape().x + p.shape().x;
    of[count++] = p;
  }
  launch_shape shape() const {
    if (count == 0) return {};
    launch_shape all = of[0].shape();
    all.x = ends[count - 1];
    return all;
  }

  template <class Block>
  LETHE_BODY void operator()(Block& block) const {
    uint32_t i = 0;
    while (block.x() >= ends[i]) i++;
    later_block<Block> own{block, i == 0 ? 0 : ends[i - 1]};
    of[i](own);
  }
};

}  // namespace lethe::device

#pragma once

#include <algorithm>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "kernels/draw_policy.hpp"
#include "runtime/base/wipe.hpp"

namespace lethe {

/// Room that grows no more, of which a draw takes the front; wiped as far as it was taken.
template <class T>
class wiped_room {
 public:
  wiped_room(size_t n, std::pmr::memory_resource* memory) : all_(n, memory) {}
  std::span<T> first(size_t n) {
    taken_ = std::max(taken_, n);
    return std::span(all_).first(n);
  }
  void wipe() {
    lethe::wipe(all_.data(), taken_ * sizeof(T));
    taken_ = 0;
  }

 private:
  std::pmr::vector<T> all_;
  size_t taken_ = 0;
};

/// Room for one draw. What it holds derives from a request: made of memory that is wiped, used
/// for one draw at a time, and wiped when a request ends.
class sampler_scratch {
 public:
  sampler_scratch(uint32_t vocab, std::pmr::memory_resource* memory);
  sampler_scratch(sampler_scratch&&) = default;

  static size_t bytes(uint32_t vocab);
  uint32_t vocab() const { return vocab_; }
  void wipe();

  /// For a row's logits where penalties, biases or a form change them; the draw writes over them.
  std::span<float> changed() { return x_.first(vocab_); }
  /// For the largest logit of each block.
  std::span<float> maxima() { return sums_.first(draw_blocks(vocab_)); }

 private:
  friend class drawing;

  uint32_t vocab_;
  wiped_room<float> x_, w_, sums_;
  wiped_room<uint32_t> ids_, places_;
};

/// A row's token, by the passes of `row`; which of them makes no difference. `allowed`, where a
/// form made the others' logits -inf, says what is drawn when none is above that; else it is id 0.
uint32_t draw(const draw_row& row, std::span<const float> logits, const row_draw& how,
              sampler_scratch& room, const uint64_t* allowed = nullptr);

}  // namespace lethe

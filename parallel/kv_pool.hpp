#pragma once

#include <vector>

#include "kernels/cpu_row.hpp"
#include "parallel/cut.hpp"
#include "parallel/region.hpp"
#include "parallel/step_plan.hpp"

namespace lethe {

/// What a page holds: per layer, per kv head, the keys and then the values of its tokens. On a
/// device a page lies in one piece; in a kv_pool, head by head, where attention walks along one.
struct kv_layout {
  uint32_t layers, kv_heads, head_dim, page_tokens;
  kv_type type;

  uint32_t heads() const { return layers * kv_heads; }
  size_t half_bytes() const { return size_t{page_tokens} * kv_row_bytes(type, head_dim); }
  /// A multiple of 64, so that a device's pages start on a cache line.
  size_t page_bytes() const { return (heads() * 2 * half_bytes() + 63) / 64 * 64; }
};

/// Tokens of a page unless another number is asked for: what a page holds of a head takes about as
/// many bytes in every type. Smaller pieces are read slower, larger pages leave more unused.
constexpr uint32_t usual_page_tokens(kv_type type) { return 64 / kv_number_bytes(type); }

/// The key/value pages of one shard, for all its layers. Of each layer and kv head all pages lie
/// side by side, so that a context's, which are mostly neighbours, are read as one. Remembers which
/// pages were written and wipes those when it ends.
class kv_pool {
 public:
  static result<kv_pool> make(const kv_layout& layout, uint32_t pages);
  kv_pool(kv_pool&&) = default;
  ~kv_pool();

  /// `layer` and `kv_head` count from the shard's first.
  kv_view view(uint32_t layer, uint32_t kv_head, const uint32_t* pages) const;
  /// Says that tokens will be written to a page.
  void touch(uint32_t page) { touched_[page] = 1; }
  void wipe(uint32_t page);
  /// The first tokens of a page.
  void copy(const page_copy& c);

  uint32_t pages() const { return uint32_t(touched_.size()); }
  const kv_layout& layout() const { return layout_; }
  /// A page's bytes of one layer and head; `head` counts through layers.
  bytes_view piece(uint32_t head, uint32_t page) const { return {at(head, page), piece_bytes()}; }

 private:
  explicit kv_pool(const kv_layout& layout) : layout_(layout) {}
  size_t piece_bytes() const { return 2 * layout_.half_bytes(); }
  std::byte* at(uint32_t head, uint32_t page) const {
    return memory_.data() + (size_t{head} * pages() + page) * piece_bytes();
  }

  kv_layout layout_;
  region memory_;
  std::vector<uint8_t> touched_;
};

}  // namespace lethe

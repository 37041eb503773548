#include "parallel/kv_pool.hpp"

#include <cstring>

#include "runtime/base/wipe.hpp"

namespace lethe {

result<kv_pool> kv_pool::make(const kv_layout& layout, uint32_t pages) {
  size_t bytes = 0;
  if (__builtin_mul_overflow(layout.page_bytes(), size_t{pages}, &bytes))
    return fail("shard: {} pages of {} bytes are more than this machine can address; lower pages",
                pages, layout.page_bytes());
  auto memory = region::map(bytes, "key/value pages");
  if (!memory) return memory.why();
  kv_pool pool(layout);
  pool.memory_ = *std::move(memory);
  pool.touched_.resize(pages);
  return pool;
}

kv_pool::~kv_pool() {
  for (uint32_t id = 0; id < touched_.size(); ++id) wipe(id);
}

kv_view kv_pool::view(uint32_t layer, uint32_t kv_head, const uint32_t* pages) const {
  return {.pool = at(layer * layout_.kv_heads + kv_head, 0),
          .page_bytes = piece_bytes(),
          .key_offset = 0,
          .value_offset = layout_.half_bytes(),
          .pages = pages,
          .page_tokens = layout_.page_tokens,
          .type = layout_.type,
          .head_dim = layout_.head_dim};
}

void kv_pool::wipe(uint32_t page) {
  if (!touched_[page]) return;
  for (uint32_t head = 0; head < layout_.heads(); ++head)
    lethe::wipe(at(head, page), piece_bytes());
  touched_[page] = 0;
}

/// Nothing behind the copied tokens: of keys, which are columns, a piece of each row of groups, of
/// values that lie side by side with later ones their numbers one by one.
void kv_pool::copy(const page_copy& c) {
  size_t scale = layout_.type == kv_type::int8 ? 4 : 0, all = layout_.page_tokens;
  size_t row = kv_row_bytes(layout_.type, layout_.head_dim) - scale;
  size_t group = kv_number_bytes(layout_.type) * kv_key_group(layout_.type);
  size_t rows = kv_value_group(layout_.type, layout_.page_tokens), whole = c.tokens / rows * rows;
  const size_t keys = 0, values = layout_.half_bytes();
  for (uint32_t head = 0; head < layout_.heads(); ++head) {
    std::byte *to = at(head, c.to), *from = at(head, c.from);
    auto copy = [&](size_t offset, size_t bytes) {
      std::memcpy(to + offset, from + offset, bytes);
    };
    for (size_t at = 0; at < row * all; at += group * all) copy(keys + at, group * c.tokens);
    copy(values, row * whole);
    for (size_t at = row * whole; whole < c.tokens && at < row * (whole + rows); at += rows) {
      copy(values + at, c.tokens - whole);
    }
    for (size_t half : {keys, values}) copy(half + row * all, scale * c.tokens);
  }
}

}  // namespace lethe

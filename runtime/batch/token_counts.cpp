#include "runtime/batch/token_counts.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace lethe {

token_counts token_counts::fork(std::pmr::memory_resource* memory) const {
  token_counts copy(memory);
  copy.slots_ = slots_;
  copy.used_ = used_;
  return copy;
}

void token_counts::reserve(uint32_t distinct) {
  size_t slots = std::bit_ceil(2 * size_t{distinct});
  if (distinct > 0 && slots > slots_.size()) rehash(slots);
}

void token_counts::add_prompt(std::span<const uint32_t> ids) {
  for (uint32_t id : ids) ++at(id).prompt;
}

token_counts::entry token_counts::of(uint32_t id) const {
  if (slots_.empty()) return {id, 0, 0};
  const entry& e = slots_[slot_of(id)];
  return occurs(e) ? e : entry{id, 0, 0};
}

/// The slot that holds `id`, or the free one where it would go.
size_t token_counts::slot_of(uint32_t id) const {
  size_t mask = slots_.size() - 1;
  // Fibonacci hashing: ids of one text are often close together.
  size_t slot = (uint64_t{id} * 0x9E3779B97F4A7C15 >> 32) & mask;
  while (occurs(slots_[slot]) && slots_[slot].id != id) slot = (slot + 1) & mask;
  return slot;
}

/// The caller counts what it gets: from then on the slot is taken.
token_counts::entry& token_counts::at(uint32_t id) {
  if (slots_.size() < 2 * (used_ + size_t{1})) rehash(std::max(size_t{64}, 2 * slots_.size()));
  entry& e = slots_[slot_of(id)];
  if (!occurs(e)) {
    e.id = id;
    ++used_;
  }
  return e;
}

void token_counts::rehash(size_t slots) {
  auto old = std::exchange(slots_, std::pmr::vector<entry>(slots, entry{}, slots_.get_allocator()));
  for (const entry& e : old) {
    if (occurs(e)) slots_[slot_of(e.id)] = e;
  }
}

}  // namespace lethe

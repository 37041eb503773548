#include "runtime/tokenizer/merge_table.hpp"

#include <bit>

namespace lethe {

merge_table::merge_table(size_t merges)
    : slots_(std::bit_ceil(merges * 2 + 2)), shift_(64 - std::countr_zero(slots_.size())) {}

void merge_table::set(uint32_t left, uint32_t right, merge m) noexcept {
  uint64_t k = key(left, right);
  slots_[place(k)] = {k, m};
}

}  // namespace lethe

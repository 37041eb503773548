#include "runtime/tokenizer/word_table.hpp"

#include <bit>

namespace lethe {

word_table::word_table(size_t words)
    : slots_(std::bit_ceil(words * 2 + 2)), shift_(64 - std::countr_zero(slots_.size())) {}

void word_table::set(std::string_view text, uint32_t id) noexcept {
  key k = key_of(text);
  slots_[place(k)] = {k, id, uint32_t(text.size())};
}

}  // namespace lethe

#include "runtime/tokenizer/vocabulary.hpp"

#include <algorithm>
#include <bit>

#include "runtime/base/limits.hpp"

namespace lethe {
namespace {

// A million tokens of 32 bytes; also bounds the tries that are built of them.
constexpr size_t all_bytes_max = size_t{32} << 20;

}  // namespace

result<void> vocabulary::add(uint32_t id, std::string_view text, kind is) {
  if (id >= limits::vocab_max)
    return fail("token id {}: at most {} tokens are supported", id, limits::vocab_max);
  if (bytes_.size() + text.size() > all_bytes_max)
    return fail("the vocabulary's texts are longer than {} bytes", all_bytes_max);
  if (id >= spans_.size()) spans_.resize(id + 1);
  if (has(id)) {
    if (this->text(id) == text) return {};
    return fail("token id {} is given to two different texts", id);
  }
  spans_[id] = {uint32_t(bytes_.size()), uint32_t(text.size()), is};
  bytes_ += text;
  longest_ = std::max(longest_, text.size());
  grow(used_ + 1);
  size_t slot = slot_of(text);
  if (slots_[slot] == free_slot) used_++;
  slots_[slot] = id;
  return {};
}

std::optional<uint32_t> vocabulary::id_of(std::string_view text) const noexcept {
  if (text.size() > longest_ || slots_.empty()) return {};
  uint32_t id = slots_[slot_of(text)];
  return id == free_slot ? std::nullopt : std::optional(id);
}

std::optional<uint32_t> vocabulary::word_of(std::string_view text) const noexcept {
  auto id = id_of(text);
  return id && is_control(*id) ? std::nullopt : id;
}

std::string_view vocabulary::text(uint32_t id) const noexcept {
  if (!has(id)) return {};
  return std::string_view(bytes_).substr(spans_[id].begin, spans_[id].length);
}

void vocabulary::reserve(size_t tokens, size_t bytes) {
  tokens = std::min<size_t>(tokens, limits::vocab_max);
  bytes_.reserve(std::min(bytes, all_bytes_max));
  spans_.reserve(tokens);
  grow(tokens);
}

// The slot that holds `text`, or the free one where it would go.
size_t vocabulary::slot_of(std::string_view text) const noexcept {
  size_t mask = slots_.size() - 1;
  size_t slot = std::hash<std::string_view>{}(text)&mask;
  while (slots_[slot] != free_slot && this->text(slots_[slot]) != text) slot = (slot + 1) & mask;
  return slot;
}

void vocabulary::grow(size_t tokens) {
  size_t wanted = std::bit_ceil(tokens * 2 + 2);
  if (wanted <= slots_.size()) return;
  std::vector<uint32_t> old(wanted, free_slot);
  old.swap(slots_);
  for (uint32_t id : old)
    if (id != free_slot) slots_[slot_of(text(id))] = id;
}

}  // namespace lethe

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.hpp"

namespace lethe {

/// Tokens as the model's file spells them, by id and by text. Ids may have holes.
class vocabulary {
 public:
  /// A `control` token is one that no text may turn into, except where it is asked for by name.
  enum class kind : uint8_t { absent, word, control };
  /// Where a text is given twice, the later id is the one that `id_of` finds.
  result<void> add(uint32_t id, std::string_view text, kind is = kind::word);
  std::optional<uint32_t> id_of(std::string_view text) const noexcept;
  /// The same, for models: never a control token.
  std::optional<uint32_t> word_of(std::string_view text) const noexcept;
  bool is_control(uint32_t id) const noexcept { return has(id) && spans_[id].is == kind::control; }
  bool has(uint32_t id) const noexcept {
    return id < spans_.size() && spans_[id].is != kind::absent;
  }
  std::string_view text(uint32_t id) const noexcept;
  /// One more than the largest id.
  uint32_t size() const noexcept { return uint32_t(spans_.size()); }
  size_t longest() const noexcept { return longest_; }
  void reserve(size_t tokens, size_t bytes);

 private:
  struct span {
    uint32_t begin = 0, length = 0;
    kind is = kind::absent;
  };
  static constexpr uint32_t free_slot = UINT32_MAX;
  size_t slot_of(std::string_view text) const noexcept;
  void grow(size_t tokens);

  std::string bytes_;
  std::vector<span> spans_;
  std::vector<uint32_t> slots_;  // ids, by hash of their text; a power of two, at most half full
  size_t used_ = 0;
  size_t longest_ = 0;
};

}  // namespace lethe

#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace lethe {

/// Ids of short texts, each found with one look at memory. Made of a vocabulary when a model loads;
/// no text that is looked up leaves a trace.
class word_table {
 public:
  static constexpr size_t bytes_max = 16;
  static constexpr uint32_t none = UINT32_MAX;
  explicit word_table(size_t words = 0);

  /// Whether a text can be here: neither empty nor too long, and without a zero.
  static bool takes(std::string_view text) noexcept {
    return !text.empty() && text.size() <= bytes_max && text.find('\0') == text.npos;
  }
  /// There must be room: no more than `words` texts.
  void set(std::string_view text, uint32_t id) noexcept;
  uint32_t find(std::string_view text) const noexcept {
    if (text.empty() || text.size() > bytes_max) return none;
    key k = key_of(text);
    // A zero inside would make another text's key of it; such texts are as long as they are here.
    const slot& s = slots_[place(k)];
    return s.size == text.size() ? s.id : none;
  }

 private:
  struct key {
    uint64_t low = 0, high = 0;
    bool operator==(const key&) const = default;
  };
  struct slot {
    key text;
    uint32_t id = none, size = 0;
  };
  template <class T>
  static uint64_t load(const char* from) noexcept {
    T t;
    std::memcpy(&t, from, sizeof t);
    return t;
  }
  /// Loads that overlap: copies of unknown lengths would be calls.
  static key key_of(std::string_view text) noexcept {
    const char* p = text.data();
    size_t n = text.size();
    if (n > 8) return {load<uint64_t>(p), load<uint64_t>(p + n - 8) >> 8 * (16 - n)};
    if (n >= 4) return {load<uint32_t>(p) | load<uint32_t>(p + n - 4) << 8 * (n - 4), 0};
    size_t middle = n / 2, last = n - 1;
    return {load<uint8_t>(p) | load<uint8_t>(p + middle) << 8 * middle |
                load<uint8_t>(p + last) << 8 * last,
            0};
  }
  size_t place(const key& k) const noexcept {
    uint64_t mixed = (k.low ^ (k.high * 0xD6E8FEB86659FD93)) * 0x9E3779B97F4A7C15;
    size_t i = (mixed ^ mixed >> 32) * 0x9E3779B97F4A7C15 >> shift_;
    while (slots_[i].id != none && slots_[i].text != k) i = (i + 1) & (slots_.size() - 1);
    return i;
  }
  std::vector<slot> slots_;  // a power of two, at most half full
  int shift_;
};

}  // namespace lethe

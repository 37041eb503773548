#pragma once

#include <algorithm>
#include <array>
#include <utility>

#include "runtime/base/bytes.hpp"
#include "runtime/base/check.hpp"
#include "runtime/base/wipe.hpp"

namespace lethe {

/// Up to 64 bytes of key material with one owner: wiped where it was when it moves or dies.
class key_bytes {
 public:
  static constexpr size_t size_max = 64;

  key_bytes() = default;
  /// That many zeroes, to be written.
  explicit key_bytes(size_t size) : size_(size) { check(size <= size_max); }
  explicit key_bytes(bytes_view from) : key_bytes(from.size()) {
    std::copy(from.begin(), from.end(), bytes_.begin());
  }
  key_bytes(key_bytes&& o) noexcept : bytes_(o.bytes_), size_(std::exchange(o.size_, 0)) {
    wipe(o.bytes_.data(), size_max);
  }
  key_bytes& operator=(key_bytes&& o) noexcept {
    if (this == &o) return *this;
    bytes_ = o.bytes_;
    size_ = o.size_;
    o.clear();
    return *this;
  }
  ~key_bytes() { clear(); }

  void clear() noexcept {
    wipe(bytes_.data(), size_max);
    size_ = 0;
  }
  size_t size() const noexcept { return size_; }
  std::byte* data() noexcept { return bytes_.data(); }
  bytes_view view() const noexcept { return {bytes_.data(), size_}; }
  std::span<std::byte> bytes() noexcept { return {bytes_.data(), size_}; }

 private:
  std::array<std::byte, size_max> bytes_{};
  size_t size_ = 0;
};

}  // namespace lethe

#pragma once

#include <memory>
#include <utility>

#include "runtime/base/bytes.hpp"
#include "runtime/base/wipe.hpp"

namespace lethe {

/// Secret bytes of any size with one owner, wiped when they die. They stay where they are when
/// they move.
class secret_bytes {
 public:
  secret_bytes() = default;
  /// That many zeroes, to be written.
  explicit secret_bytes(size_t size) : bytes_(new std::byte[size]()), size_(size) {}
  explicit secret_bytes(bytes_view from) : secret_bytes(from.size()) {
    if (size_ > 0) std::memcpy(bytes_.get(), from.data(), size_);
  }
  secret_bytes(secret_bytes&& o) noexcept
      : bytes_(std::move(o.bytes_)), size_(std::exchange(o.size_, 0)) {}
  secret_bytes& operator=(secret_bytes&& o) noexcept {
    if (this == &o) return *this;
    clear();
    bytes_ = std::move(o.bytes_);
    size_ = std::exchange(o.size_, 0);
    return *this;
  }
  ~secret_bytes() { clear(); }

  void clear() noexcept {
    if (bytes_) wipe(bytes_.get(), size_);
    bytes_.reset();
    size_ = 0;
  }
  size_t size() const noexcept { return size_; }
  bytes_view view() const noexcept { return {bytes_.get(), size_}; }
  std::span<std::byte> bytes() noexcept { return {bytes_.get(), size_}; }
  std::string_view text() const noexcept { return as_text(view()); }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  size_t size_ = 0;
};

}  // namespace lethe

#pragma once

#include <algorithm>
#include <memory>
#include <utility>

#include "runtime/base/bytes.hpp"
#include "runtime/base/wipe.hpp"

namespace lethe {

/// A secret of any length with one owner: never copied, wiped when it dies. What fits key_bytes
/// goes there.
class secret_bytes {
 public:
  secret_bytes() = default;
  /// That many zeroes, to be written.
  explicit secret_bytes(size_t size) : bytes_(std::make_unique<std::byte[]>(size)), size_(size) {}
  explicit secret_bytes(bytes_view from) : secret_bytes(from.size()) {
    std::copy(from.begin(), from.end(), bytes_.get());
  }
  secret_bytes(secret_bytes&& o) noexcept
      : bytes_(std::move(o.bytes_)), size_(std::exchange(o.size_, 0)) {}
  secret_bytes& operator=(secret_bytes o) noexcept {
    std::swap(bytes_, o.bytes_);
    std::swap(size_, o.size_);
    return *this;  // `o` dies here, wiped
  }
  ~secret_bytes() {
    if (bytes_) wipe(bytes_.get(), size_);
  }

  size_t size() const noexcept { return size_; }
  bytes_view view() const noexcept { return {bytes_.get(), size_}; }
  std::span<std::byte> bytes() noexcept { return {bytes_.get(), size_}; }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  size_t size_ = 0;
};

}  // namespace lethe

#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace lethe {

/// Bytes that the bodies of a server's requests may have together. Any thread.
class body_budget {
 public:
  explicit body_budget(size_t bytes) : left_(bytes) {}
  /// All of them, or none.
  bool take(size_t bytes) {
    size_t left = left_.load(std::memory_order_relaxed);
    while (left >= bytes)
      if (left_.compare_exchange_weak(left, left - bytes, std::memory_order_relaxed)) return true;
    return false;
  }
  void give(size_t bytes) { left_.fetch_add(bytes, std::memory_order_relaxed); }
  size_t left() const { return left_.load(std::memory_order_relaxed); }

 private:
  std::atomic<size_t> left_;
};

/// What one request has of it, until this dies.
class body_share {
 public:
  body_share() = default;
  explicit body_share(std::shared_ptr<body_budget> of) : of_(std::move(of)) {}
  body_share(body_share&& o) noexcept : of_(std::move(o.of_)), bytes_(std::exchange(o.bytes_, 0)) {}
  body_share& operator=(body_share o) noexcept {
    std::swap(of_, o.of_);
    std::swap(bytes_, o.bytes_);
    return *this;
  }
  ~body_share() { release(); }

  bool grow(size_t bytes) {
    if (of_ && !of_->take(bytes)) return false;
    bytes_ += bytes;
    return true;
  }
  /// Before it dies: others may have that much while this body is still kept.
  void release() {
    if (auto of = std::exchange(of_, nullptr)) of->give(std::exchange(bytes_, 0));
  }

 private:
  std::shared_ptr<body_budget> of_;
  size_t bytes_ = 0;
};

}  // namespace lethe

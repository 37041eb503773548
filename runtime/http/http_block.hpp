#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>

#include "runtime/base/wipe.hpp"

namespace lethe {

/// Bytes on their way to a client: one copy, wiped when it dies, with room to frame it in place.
class http_block {
 public:
  /// A piece of an answer's body, which counts against the answer's queue.
  static http_block piece(std::string_view payload) { return {payload, payload.size()}; }
  static http_block frame(std::string_view text) { return {text, 0}; }

  http_block(http_block&& o) noexcept
      : size_(o.size_),
        bytes_(std::move(o.bytes_)),
        from_(o.from_),
        to_(o.to_),
        credit_(o.credit_) {}
  http_block& operator=(http_block&&) = delete;
  ~http_block() {
    if (bytes_) wipe(bytes_.get(), room());
  }

  std::string_view bytes() const { return {bytes_.get() + from_, to_ - from_}; }
  size_t credit() const { return credit_; }
  /// Puts the chunk's size before it and a line end behind it; once.
  void make_chunk();

 private:
  static constexpr size_t before = 18, after = 2;  // 16 hex digits and a line end; a line end
  http_block(std::string_view text, size_t credit);
  size_t room() const { return before + size_ + after; }

  size_t size_ = 0;
  std::unique_ptr<char[]> bytes_;
  size_t from_ = 0, to_ = 0;
  size_t credit_ = 0;
};

}  // namespace lethe

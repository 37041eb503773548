#pragma once

#include <mutex>

#include "runtime/crypto/seen_seals.hpp"

namespace lethe {

/// The seals and tokens that one key has let in. Any thread may ask.
class seal_memory {
 public:
  explicit seal_memory(size_t max) : seals_(max), tokens_(max) {}

  /// True once for each of both; false is a refusal: it was seen, or there is no room.
  [[nodiscard]] bool admit(bytes_view enc, const hash32& token) {
    std::lock_guard guard(lock_);
    return tokens_.insert(token) && seals_.insert(enc);
  }

 private:
  std::mutex lock_;
  seen_seals seals_, tokens_;
};

}  // namespace lethe

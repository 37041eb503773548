#pragma once

#include <mutex>

#include "runtime/crypto/seen_seals.hpp"

namespace lethe {

/// The seals and tokens that one key has let in. Any thread may ask.
class seal_memory {
 public:
  explicit seal_memory(size_t max) : seals_(max), tokens_(max) {}

  enum class answer : uint8_t { fresh, seen, full };
  /// Fresh once for each of both.
  [[nodiscard]] answer admit(bytes_view enc, const hash32& token) {
    std::lock_guard guard(lock_);
    if (tokens_.full() || seals_.full()) return answer::full;
    return tokens_.insert(token) && seals_.insert(enc) ? answer::fresh : answer::seen;
  }

 private:
  std::mutex lock_;
  seen_seals seals_, tokens_;
};

}  // namespace lethe

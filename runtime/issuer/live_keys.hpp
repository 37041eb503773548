#pragma once

#include <future>
#include <memory>
#include <mutex>

#include "runtime/token/token_issuer.hpp"

namespace lethe {

/// The keys that many threads sign with, while one replaces them.
class live_keys {
 public:
  using held = std::shared_ptr<const token_issuer>;

  /// For one request.
  held hold() const {
    std::lock_guard lock(mutex_);
    return keys_;
  }
  /// Returns when nobody holds those from before: what is done then comes after all they signed.
  void replace(token_issuer keys);

 private:
  mutable std::mutex mutex_;
  held keys_;
  std::future<void> released_;
};

}  // namespace lethe

#pragma once

#include <mutex>
#include <optional>

#include "runtime/base/result.hpp"

namespace lethe {

/// Why something ended, told by whoever notices: the first reason stays.
class first_error {
 public:
  void set(error why) {
    std::lock_guard lock(mutex_);
    if (!why_) why_ = std::move(why);
  }
  /// Nothing so far, or that reason.
  result<void> get() const {
    std::lock_guard lock(mutex_);
    return why_ ? result<void>(*why_) : result<void>();
  }

 private:
  mutable std::mutex mutex_;
  std::optional<error> why_;
};

}  // namespace lethe

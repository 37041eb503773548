#pragma once

#include <chrono>
#include <string>

#include "runtime/base/owned_fd.hpp"
#include "runtime/base/result.hpp"

namespace lethe {

/// Holds a device for this process: another rank there, of this cluster or of another, would find
/// its memory taken. Ends with the process, however that ends.
class device_claim {
 public:
  /// `id`: as device_facts says. Whoever has it now may be about to end: waits so long.
  static result<device_claim> take(const std::string& id, std::chrono::milliseconds patience);

 private:
  explicit device_claim(owned_fd name) : name_(std::move(name)) {}
  owned_fd name_;
};

}  // namespace lethe

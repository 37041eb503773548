#pragma once

#include <cstddef>
#include <utility>

#include "runtime/base/bytes.hpp"
#include "runtime/base/result.hpp"

namespace lethe {

/// Zeroed memory of its own, between guard pages, out of core dumps and forks. Taken from the
/// machine as it is touched, by huge pages where it has them. Its owner wipes what it wrote; the
/// rest reads zero.
class region {
 public:
  static result<region> map(size_t bytes, const char* what);
  region() = default;
  region(region&& o) noexcept : at_(std::exchange(o.at_, nullptr)), bytes_(o.bytes_) {}
  region& operator=(region&& o) noexcept;
  ~region();

  std::byte* data() const { return at_; }
  size_t size() const { return at_ == nullptr ? 0 : bytes_; }
  bytes_view view() const { return {at_, size()}; }

 private:
  std::byte* at_ = nullptr;
  size_t bytes_ = 0;  // up to the guard page
};

}  // namespace lethe

#pragma once

#include <cstddef>

namespace lethe {

/// Zeroes so many bytes of this thread's stack below the caller, which calls that have returned
/// left there, and the vector registers, which copies leave their last bytes in.
void wipe_stack(size_t bytes) noexcept;

/// Stands in a frame above all that touches a user's words, and wipes below it at its end.
class clean_stack {
 public:
  explicit clean_stack(size_t bytes) : bytes_(bytes) {}
  ~clean_stack() { wipe_stack(bytes_); }
  clean_stack(const clean_stack&) = delete;
  clean_stack& operator=(const clean_stack&) = delete;

 private:
  size_t bytes_;
};

}  // namespace lethe

#pragma once

#include <cstdint>
#include <span>

namespace lethe {

/// Guesses a choice's next tokens from its own words: where its last ones stood before, what
/// followed there. Keeps numbers alone, how well it guessed of late.
class lookahead {
 public:
  /// At once: more of them make a step slower than they are right.
  static constexpr uint32_t most = 7;

  /// Writes guesses into the front of `room`; how many. None where the last tokens are new, and for
  /// a while after guesses that were wrong.
  uint32_t guess(std::span<const uint32_t> prompt, std::span<const uint32_t> answer,
                 std::span<uint32_t> room);
  /// Of `tried` guesses the first `right` came true.
  void learn(uint32_t tried, uint32_t right);

 private:
  uint32_t reach_ = least;  // guesses next time
  uint32_t misses_ = 0;     // tries in a row that brought nothing
  uint32_t rest_ = 0;       // steps till the next try

  static constexpr uint32_t least = 2;
};

}  // namespace lethe

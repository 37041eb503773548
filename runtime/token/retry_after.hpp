#pragma once

#include <cstdint>

namespace lethe {

/// Servers say Retry-After in steps of this, and clients ignore what is finer: a delay of one's own
/// would tag a client.
inline constexpr uint64_t retry_after_step_s = 5;

/// The next step that is not earlier; at least one.
constexpr uint64_t coarse_retry_s(uint64_t seconds) noexcept {
  const uint64_t steps = seconds / retry_after_step_s + (seconds % retry_after_step_s != 0);
  constexpr uint64_t steps_max = UINT64_MAX / retry_after_step_s;
  return retry_after_step_s * (steps == 0 ? 1 : steps > steps_max ? steps_max : steps);
}

}  // namespace lethe

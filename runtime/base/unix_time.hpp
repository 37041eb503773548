#pragma once

#include <chrono>
#include <cstdint>

namespace lethe {

/// The wall clock, in seconds and milliseconds since 1970.
inline uint64_t unix_s() {
  using namespace std::chrono;
  return uint64_t(duration_cast<seconds>(system_clock::now().time_since_epoch()).count());
}
inline uint64_t unix_ms() {
  using namespace std::chrono;
  return uint64_t(duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count());
}

}  // namespace lethe

#pragma once

#include <cstdint>
#include <optional>

#include "runtime/log/draw.hpp"

/// When a client does by itself what must not tell of its calls: at times that are drawn anew each
/// time, around these.
namespace lethe {

inline constexpr uint64_t claim_after_s = 60;   // change of a request that failed
inline constexpr uint64_t stock_every_s = 300;  // looks whether less than a batch is left
inline constexpr uint64_t restock_within_s = 8 * 3600;
inline constexpr uint64_t exchange_every_s = 120;  // one token of the key before

/// Half of it to one and a half times.
inline uint64_t about(uint64_t seconds, const randomness& random = fill_random) {
  return seconds / 2 + uniform_below(seconds + 1, random);
}

/// When a client that keeps its stock buys: at any time of the hours after it found less than a
/// batch, so that a purchase says little of the request before it; at once where less than half of
/// one is left.
class restocking {
 public:
  bool due(size_t tokens, size_t batch, uint64_t now_s, const randomness& random = fill_random) {
    if (tokens >= batch) return at_s_.reset(), false;
    if (!at_s_) at_s_ = now_s + uniform_below(restock_within_s, random);
    const bool waits = tokens >= (batch + 1) / 2 && now_s < *at_s_;
    if (!waits) at_s_.reset();
    return !waits;
  }

 private:
  std::optional<uint64_t> at_s_;
};

}  // namespace lethe

#pragma once

#include <array>
#include <cstdint>

namespace lethe {

/// Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3",
/// SC'11): a keyed bijection of counters, so that a draw needs no state and no order.
constexpr std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter,
                                         std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    uint64_t a = uint64_t{0xD2511F53} * counter[0];
    uint64_t b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {uint32_t(b >> 32) ^ counter[1] ^ key[0], uint32_t(b),
               uint32_t(a >> 32) ^ counter[3] ^ key[1], uint32_t(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

/// Uniform in [0, 1) with 53 bits: a function of who asks (seed, choice) and where (position).
constexpr double uniform_at(uint64_t seed, uint32_t choice, uint32_t position) {
  auto word = philox({position, choice, 0, 0}, {uint32_t(seed), uint32_t(seed >> 32)});
  uint64_t bits = uint64_t{word[0]} << 32 | word[1];
  return double(bits >> 11) * 0x1p-53;
}

}  // namespace lethe

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace lethe {

/// Bounds of all histograms of time, in microseconds. They are fixed and coarse: an operator who
/// could choose them could measure one request.
inline constexpr std::array<uint64_t, 16> time_bounds_us = {
    500,     1'000,   2'500,     5'000,     10'000,    25'000,     50'000,     100'000,
    250'000, 500'000, 1'000'000, 2'500'000, 5'000'000, 10'000'000, 30'000'000, 60'000'000};
/// Of histograms of lengths, in tokens.
inline constexpr std::array<uint64_t, 8> token_bounds = {4,    16,    64,     256,
                                                         1024, 4'096, 16'384, 65'536};

/// How many values fell under each of fixed bounds: bucket i holds those up to bounds[i] and above
/// the bound before, the last one those above all.
template <const auto& bounds>
struct histogram {
  std::array<uint64_t, bounds.size() + 1> counts{};
  uint64_t sum = 0;

  constexpr void add(uint64_t value, uint64_t times = 1) {
    counts[size_t(std::ranges::lower_bound(bounds, value) - bounds.begin())] += times;
    sum += value * times;
  }
  constexpr void add(const histogram& more) {
    for (size_t i = 0; i < counts.size(); ++i) counts[i] += more.counts[i];
    sum += more.sum;
  }
  constexpr bool operator==(const histogram&) const = default;
};

using time_histogram = histogram<time_bounds_us>;
using token_histogram = histogram<token_bounds>;

}  // namespace lethe

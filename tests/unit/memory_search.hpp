#pragma once

#include <algorithm>
#include <cstdio>
#include <vector>

#include "runtime/base/bytes.hpp"

/// Looks for a secret in all that this process may have left of it.
namespace lethe::test {

/// A secret as the search knows it: inverted, so that the search does not find itself.
class needle {
 public:
  explicit needle(bytes_view secret) {
    inverted_.reserve(secret.size());
    for (std::byte b : secret) inverted_.push_back(~b);
  }
  /// As OpenSSL keeps a number: from its low end.
  static needle of_number(bytes_view big_endian) {
    needle n(big_endian);
    std::ranges::reverse(n.inverted_);
    return n;
  }
  size_t count_in(const volatile std::byte* from, const volatile std::byte* to) const {
    const std::byte first = ~inverted_[0];
    size_t found = 0;
    for (auto at = from; at + inverted_.size() <= to; ++at) {
      if (*at != first) continue;
      size_t same = 1;
      while (same < inverted_.size() && at[same] == ~inverted_[same]) ++same;
      found += same == inverted_.size();
    }
    return found;
  }

 private:
  std::vector<std::byte> inverted_;
};

/// In heap, stacks and whatever else is private and writable, libraries' data included.
[[gnu::noinline]] inline size_t count_everywhere(const needle& n) {
  std::vector<std::pair<uintptr_t, uintptr_t>> ranges;
  FILE* maps = std::fopen("/proc/self/maps", "r");
  char line[512], mode[8];
  for (uintptr_t from, to; std::fgets(line, sizeof line, maps);)
    if (std::sscanf(line, "%lx-%lx %7s", &from, &to, mode) == 3 && std::string_view(mode) == "rw-p")
      ranges.emplace_back(from, to);
  std::fclose(maps);
  size_t found = 0;
  for (auto [from, to] : ranges)
    found += n.count_in(reinterpret_cast<const volatile std::byte*>(from),
                        reinterpret_cast<const volatile std::byte*>(to));
  return found;
}

}  // namespace lethe::test

#pragma once

#include <cstdint>
#include <random>

namespace lethe::sim {

/// All chance of one run. The same seed gives the same throws on every machine.
class dice {
 public:
  explicit dice(uint64_t seed) : bits_(seed) {}
  uint64_t below(uint64_t n) { return bits_() % n; }
  uint64_t between(uint64_t least, uint64_t most) { return least + below(most - least + 1); }
  bool once_in(uint64_t n) { return below(n) == 0; }
  template <class Container>
  auto& one_of(Container& from) {
    auto at = from.begin();
    std::advance(at, below(from.size()));
    return *at;
  }

 private:
  std::mt19937_64 bits_;
};

}  // namespace lethe::sim

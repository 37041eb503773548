#pragma once

#include <cstdint>
#include <span>

/// How sure a count of right guesses is: sums of the terms themselves, nothing approximated.
namespace lethe::audit {

struct guesses {
  uint64_t right = 0, tries = 0;
  double share() const { return tries ? double(right) / double(tries) : 0; }
};

/// How likely so many right guesses or more are, where each is right with that probability.
double chance_of(const guesses& g, double probability);
/// The same where each guess has its own.
double chance_of(uint64_t right, std::span<const double> probabilities);

struct range {
  double low = 0, high = 1;
};
/// What lies outside is refuted by these guesses, each side with probability alpha / 2 at most.
range interval_of(const guesses& g, double alpha);

/// How often a value of `more` is above one of `less`, ties counted half: 0.5 where both are alike.
double auc(std::span<const double> less, std::span<const double> more);
/// The standard deviation of that where both are alike.
double auc_deviation(uint64_t less, uint64_t more);

}  // namespace lethe::audit

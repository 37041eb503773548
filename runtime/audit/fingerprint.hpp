#pragma once

#include "runtime/audit/finding.hpp"
#include "runtime/audit/tell_apart.hpp"

namespace lethe::audit {

/// One piece of an answer as it passed: when, since the request had left, and how large.
struct piece_seen {
  double at_ms = 0;
  uint32_t bytes = 0;
};
using capture = std::vector<piece_seen>;
/// Captures of the answers to each prompt.
using captures = std::vector<std::vector<capture>>;

/// What there is to notice of a capture: how many, how large, when, and how all that went on.
feature_row features_of(const capture& c);
uint64_t bytes_of(const capture& c);

/// How well prompts are told apart, and what an answer says of itself by its length alone.
struct fingerprint {
  told_apart all;      // of all prompts
  size_t classes = 0;  // different lengths of whole answers, in bytes
  double allowed = 0;  // right guesses of the best guesser who is told nothing but the class
  proportion within;   // of right guesses between prompts whose answers are always of one and the
                       // same class
  double within_by_chance = 0;
  double all_chance = 1;     // of so many right ones or more, where nothing but the class shows
  double within_chance = 1;  // and where nothing shows within a class

  /// Nothing but the class shows, or so little that it is an accident once in 1 / alpha audits.
  bool hidden(double alpha) const { return all_chance > alpha && within_chance > alpha; }
};

/// Where answers are padded, their classes are their lengths after it: in bytes, or with
/// `piece_bytes` as powers of two of pieces that are about as large, whatever stood between them.
fingerprint fingerprint_of(const captures& by_prompt, uint64_t seed, uint32_t piece_bytes = 0);

/// "82.3 % of 50 prompts told apart (between 75.1 % and 88.0 %; chance 2.0 %), by the nearest
/// neighbours"
std::string text_of(const told_apart& t, size_t labels, double alpha);
std::string percent(double share);

}  // namespace lethe::audit

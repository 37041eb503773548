#pragma once

#include <utility>

#include "runtime/base/histogram.hpp"
#include "schemas/messages.capnp.h"

namespace lethe {

enum class time_measure : uint8_t {
  first_token,
  between_tokens,
  per_token,
  whole,
  queue,
  prefill,
  decode,
};
enum class length_measure : uint8_t { prompt, answer };
inline constexpr size_t time_measures = 7, length_measures = 2;

/// How long served requests took and were, all of them together.
struct measures {
  std::array<time_histogram, time_measures> times{};
  std::array<token_histogram, length_measures> lengths{};

  time_histogram& of(time_measure m) { return times[size_t(m)]; }
  token_histogram& of(length_measure m) { return lengths[size_t(m)]; }

  void add(const measures& more);
  void write(schema::Measures::Builder b) const;
  /// What does not fit our bounds counts as nothing: a peer of another version sent it.
  static measures read(schema::Measures::Reader r);
};

/// One request that ended. Times are 0 where there was none.
struct ended_request {
  bool served = false;
  uint32_t prompt_tokens = 0, answer_tokens = 0, arenas = 0;
  uint64_t bytes_wiped = 0;
  uint64_t first_token_us = 0;  // since it was submitted
  uint64_t whole_us = 0;
  uint64_t queue_us = 0;    // until its first step, in the engine
  uint64_t prefill_us = 0;  // from there to its first token
  uint64_t decode_us = 0;   // from there to its last
  time_histogram between_tokens;
};

/// What requests took, all of them together. Only those that were served are measured.
struct requests_took {
  uint64_t prompt_tokens = 0, answer_tokens = 0, arenas = 0, bytes_wiped = 0;
  measures of_served;

  void add(const ended_request& r);
  void add(const requests_took& more);
  void write(schema::Took::Builder b) const;
  static requests_took read(schema::Took::Reader r);
};

/// What an engine keeps to itself until so many requests have ended that it is no longer about one
/// of them (metrics_gate says how many that is outside the lab).
class told_together {
 public:
  explicit told_together(uint64_t least) : least_(least) {}
  /// One more ended. True: `take` what there is.
  bool add(const requests_took& one) {
    waiting_.add(one);
    return ++ended_ >= least_;
  }
  requests_took take() {
    ended_ = 0;
    return std::exchange(waiting_, {});
  }

 private:
  uint64_t least_, ended_ = 0;
  requests_took waiting_;
};

template <const auto& bounds>
void write_histogram(const histogram<bounds>& h, schema::Histogram::Builder b) {
  auto counts = b.initCounts(uint32_t(h.counts.size()));
  for (uint32_t i = 0; i < h.counts.size(); ++i) counts.set(i, h.counts[i]);
  b.setSum(h.sum);
}

template <const auto& bounds>
void read_histogram(schema::Histogram::Reader r, histogram<bounds>& h) {
  auto counts = r.getCounts();
  if (counts.size() != h.counts.size()) return;
  for (uint32_t i = 0; i < counts.size(); ++i) h.counts[i] = counts[i];
  h.sum = r.getSum();
}

}  // namespace lethe

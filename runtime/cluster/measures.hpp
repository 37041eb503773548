#pragma once

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

  /// One that ended. Only those that were served count.
  void count(schema::Release::Reader r);
  void write(schema::Measures::Builder b) const;
  /// What does not fit our bounds counts as nothing: a peer of another version sent it.
  static measures read(schema::Measures::Reader r);
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

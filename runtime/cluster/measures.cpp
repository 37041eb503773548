#include "runtime/cluster/measures.hpp"

namespace lethe {

namespace {

template <class Histograms>
void write_all(const Histograms& all, capnp::List<schema::Histogram>::Builder list) {
  for (uint32_t i = 0; i < all.size(); ++i) write_histogram(all[i], list[i]);
}

template <class Histograms>
void read_all(capnp::List<schema::Histogram>::Reader list, Histograms& all) {
  if (list.size() != all.size()) return;
  for (uint32_t i = 0; i < all.size(); ++i) read_histogram(list[i], all[i]);
}

}  // namespace

void measures::count(schema::Release::Reader r) {
  if (r.getOutcome() != schema::Outcome::SERVED) return;
  of(length_measure::prompt).add(r.getPromptTokens());
  of(length_measure::answer).add(r.getAnswerTokens());
  of(time_measure::whole).add(r.getTotalUs());
  of(time_measure::queue).add(r.getQueueUs());
  if (r.getAnswerTokens() == 0) return;
  of(time_measure::first_token).add(r.getFirstTokenUs());
  of(time_measure::prefill).add(r.getPrefillUs());
  of(time_measure::decode).add(r.getDecodeUs());
  time_histogram between;
  read_histogram(r.getBetweenTokens(), between);
  of(time_measure::between_tokens).add(between);
  if (r.getAnswerTokens() == 1) return;
  of(time_measure::per_token).add(r.getDecodeUs() / (r.getAnswerTokens() - 1));
}

void measures::write(schema::Measures::Builder b) const {
  write_all(times, b.initTimes(time_measures));
  write_all(lengths, b.initLengths(length_measures));
}

measures measures::read(schema::Measures::Reader r) {
  measures all;
  read_all(r.getTimes(), all.times);
  read_all(r.getLengths(), all.lengths);
  return all;
}

}  // namespace lethe

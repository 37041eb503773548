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

void measures::add(const measures& more) {
  for (size_t i = 0; i < times.size(); ++i) times[i].add(more.times[i]);
  for (size_t i = 0; i < lengths.size(); ++i) lengths[i].add(more.lengths[i]);
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

namespace {

measures measured(const ended_request& r) {
  measures m;
  m.of(length_measure::prompt).add(r.prompt_tokens);
  m.of(length_measure::answer).add(r.answer_tokens);
  m.of(time_measure::whole).add(r.whole_us);
  m.of(time_measure::queue).add(r.queue_us);
  if (r.answer_tokens == 0) return m;
  m.of(time_measure::first_token).add(r.first_token_us);
  m.of(time_measure::prefill).add(r.prefill_us);
  m.of(time_measure::decode).add(r.decode_us);
  m.of(time_measure::between_tokens).add(r.between_tokens);
  if (r.answer_tokens == 1) return m;
  m.of(time_measure::per_token).add(r.decode_us / (r.answer_tokens - 1));
  return m;
}

}  // namespace

void requests_took::add(const ended_request& r) {
  add({r.prompt_tokens, r.answer_tokens, r.arenas, r.bytes_wiped,
       r.served ? measured(r) : measures()});
}

void requests_took::add(const requests_took& more) {
  prompt_tokens += more.prompt_tokens;
  answer_tokens += more.answer_tokens;
  arenas += more.arenas;
  bytes_wiped += more.bytes_wiped;
  of_served.add(more.of_served);
}

void requests_took::write(schema::Took::Builder b) const {
  b.setPromptTokens(prompt_tokens);
  b.setAnswerTokens(answer_tokens);
  b.setArenas(arenas);
  b.setBytesWiped(bytes_wiped);
  of_served.write(b.initMeasures());
}

requests_took requests_took::read(schema::Took::Reader r) {
  return {r.getPromptTokens(), r.getAnswerTokens(), r.getArenas(), r.getBytesWiped(),
          measures::read(r.getMeasures())};
}

}  // namespace lethe

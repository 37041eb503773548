#include "runtime/cluster/cluster_metrics.hpp"

#include <fmt/format.h>

#include <cmath>

#include "runtime/policy/policy.hpp"

namespace lethe {

namespace {

constexpr uint32_t stalled_ms = 10'000;  // requests run and no step ends: not ready

/// By its own word, or because it says none.
bool is_stalled(schema::EngineLoad::Reader load, uint32_t silent_after_ms) {
  return load.getStalledMs() >= stalled_ms ||
         (silent_after_ms > 0 && load.getSilentMs() >= silent_after_ms);
}

void add_engine(cluster_numbers& n, schema::EngineStatus::Reader e, uint32_t silent_after_ms) {
  auto load = e.getLoad();
  auto& c = n.counters;
  c.restarts += e.getRestarts();
  bool ready = e.getState().getPhase() == schema::Phase::READY;
  bool stalled = is_stalled(load, silent_after_ms);
  n.ready += ready && !stalled;
  n.stalled += ready && stalled;
  n.context = std::max(n.context, e.getState().getContext());
  n.running += load.getRunning();
  n.queued += load.getQueued();
  n.pages += load.getPages();
  n.reserved += load.getPagesReserved();
  n.resident += load.getResidentBytes();
  c.prefilled += load.getPrefilled();
  c.decoded += load.getDecoded();
  c.pages_wiped += load.getPagesWiped();
}

/// As if every value were its bucket's bound.
template <const auto& bounds>
void round_sum(histogram<bounds>& h) {
  h.sum = 0;
  for (size_t i = 0; i < h.counts.size(); ++i)
    h.sum += h.counts[i] * bounds[std::min(i, bounds.size() - 1)];
}

void round_down(uint64_t& n, uint64_t to) { n -= n % to; }

void round_lengths(cluster_counters& c) {
  round_down(c.prefilled, metrics_gate::tokens_rounded);
  round_down(c.decoded, metrics_gate::tokens_rounded);
  round_down(c.pages_wiped, metrics_gate::pages_rounded);
  round_down(c.bytes_wiped, metrics_gate::bytes_rounded);
  for (auto& h : c.requests.times) round_sum(h);
  // As many as answers have tokens.
  c.requests.of(time_measure::between_tokens) = {};
  c.requests.lengths = {};
}

}  // namespace

cluster_numbers numbers_of(schema::Status::Reader status) {
  cluster_numbers n{.profile = status.getProfile(), .model = status.getModel()};
  n.up_ms = status.getUpMs();
  n.wanted = status.getWanted();
  n.leaving = status.getLeaving();
  for (auto e : status.getEngines()) add_engine(n, e, status.getSilentAfterMs());
  auto from = status.getCounts();
  auto& c = n.counters;
  c.admitted = from.getAdmitted();
  c.served = from.getServed();
  c.refused = from.getRefused();
  c.cancelled = from.getCancelled();
  c.failed = from.getFailed();
  c.turned_away = from.getTurnedAway();
  c.arenas_wiped = from.getArenasWiped();
  c.bytes_wiped = from.getBytesWiped();
  c.requests = measures::read(status.getMeasures());
  return n;
}

cluster_numbers metrics_gate::shown(cluster_numbers n) {
  if (policy::takes(n.profile, "exact-metrics")) return n;
  bool many = n.counters.ended() >= released_.ended() + requests_least;
  if (many && n.up_ms >= released_ms_ + hold_ms) {
    released_ = n.counters;
    released_ms_ = n.up_ms;
  }
  n.counters = released_;
  round_lengths(n.counters);
  n.reserved = uint64_t(std::ceil(n.kv_share() * 10) * double(n.pages) / 10);
  return n;
}

namespace {

struct metric {
  const char *name, *kind, *help;
  double value;
};

void write_head(std::string& out, const char* name, const char* kind, const char* help) {
  out += fmt::format("# HELP {0} {2}\n# TYPE {0} {1}\n", name, kind, help);
}

/// Counts are cumulative there; `unit` values make one of what is shown.
template <const auto& bounds>
void write_histogram(std::string& out, const char* name, const char* help,
                     const histogram<bounds>& h, double unit) {
  write_head(out, name, "histogram", help);
  uint64_t so_far = 0;
  for (size_t i = 0; i < bounds.size(); ++i) {
    so_far += h.counts[i];
    out += fmt::format("{}_bucket{{le=\"{}\"}} {}\n", name, double(bounds[i]) / unit, so_far);
  }
  so_far += h.counts.back();
  out += fmt::format("{0}_bucket{{le=\"+Inf\"}} {1}\n{0}_sum {2}\n{0}_count {1}\n", name, so_far,
                     double(h.sum) / unit);
}

void write_numbers(std::string& out, const cluster_numbers& n) {
  const auto& c = n.counters;
  const metric all[] = {
      {"lethe:engines_wanted", "gauge", "Engines that should serve.", double(n.wanted)},
      {"lethe:engines_ready", "gauge", "Engines that serve.", double(n.ready)},
      {"lethe:engine_restarts_total", "counter", "Restarts of the engines that there are.",
       double(c.restarts)},
      {"lethe:num_requests_running", "gauge", "Sequences in the running batches.",
       double(n.running)},
      {"lethe:num_requests_waiting", "gauge", "Requests that wait in engines.", double(n.queued)},
      {"lethe:kv_cache_usage_perc", "gauge", "Share of key/value pages reserved, 0 to 1.",
       n.kv_share()},
      {"lethe:prompt_tokens_total", "counter", "Prompt tokens computed.", double(c.prefilled)},
      {"lethe:generation_tokens_total", "counter", "Tokens generated.", double(c.decoded)},
      {"lethe:requests_admitted_total", "counter", "Requests that found a place.",
       double(c.admitted)},
      {"lethe:requests_turned_away_total", "counter", "Requests that found none.",
       double(c.turned_away)},
      {"lethe:arenas_wiped_total", "counter", "Arenas wiped at the end of requests.",
       double(c.arenas_wiped)},
      {"lethe:bytes_wiped_total", "counter", "Bytes wiped in arenas.", double(c.bytes_wiped)},
      {"lethe:pages_wiped_total", "counter", "Key/value pages wiped.", double(c.pages_wiped)},
      {"lethe:resident_memory_bytes", "gauge",
       "Memory of the engines' processes, summed by engine.", double(n.resident)},
      {"lethe:uptime_seconds", "gauge", "Since the cluster came up.", double(n.up_ms) / 1000},
  };
  for (const auto& m : all) {
    write_head(out, m.name, m.kind, m.help);
    out += fmt::format("{} {}\n", m.name, m.value);
  }
}

void write_ends(std::string& out, const cluster_counters& c) {
  write_head(out, "lethe:request_success_total", "counter", "Requests that ended, by how.");
  const std::pair<const char*, uint64_t> ends[] = {{"served", c.served},
                                                   {"refused", c.refused},
                                                   {"cancelled", c.cancelled},
                                                   {"failed", c.failed}};
  for (const auto& [how, n] : ends)
    out += fmt::format("lethe:request_success_total{{finished_reason=\"{}\"}} {}\n", how, n);
}

struct named {
  const char *name, *help;
};

// In the order of time_measure and of length_measure.
constexpr named time_names[time_measures] = {
    {"lethe:time_to_first_token_seconds", "From a request's arrival at its engine."},
    {"lethe:inter_token_latency_seconds", "Between two tokens of an answer."},
    {"lethe:request_time_per_output_token_seconds", "Mean of an answer's tokens after its first."},
    {"lethe:e2e_request_latency_seconds", "From arrival at the engine until all is wiped."},
    {"lethe:request_queue_time_seconds", "Until a request's first step."},
    {"lethe:request_prefill_time_seconds", "From its first step to its first token."},
    {"lethe:request_decode_time_seconds", "From its first token to its last."},
};
constexpr named length_names[length_measures] = {
    {"lethe:request_prompt_tokens", "Tokens of prompts."},
    {"lethe:request_generation_tokens", "Tokens of answers."},
};

}  // namespace

std::string metrics_text(const cluster_numbers& n) {
  std::string out;
  write_numbers(out, n);
  write_ends(out, n.counters);
  bool exact = policy::takes(n.profile, "exact-metrics");
  const auto& m = n.counters.requests;
  for (size_t i = 0; i < time_measures; ++i)
    if (exact || time_measure(i) != time_measure::between_tokens)
      write_histogram(out, time_names[i].name, time_names[i].help, m.times[i], 1e6);
  for (size_t i = 0; exact && i < length_measures; ++i)
    write_histogram(out, length_names[i].name, length_names[i].help, m.lengths[i], 1);
  return out;
}

}  // namespace lethe

#include "bench/gpu/model_measure.hpp"

#include <cstdarg>
#include <cstdio>

#include "bench/gpu/shares.hpp"
#include "bench/spread.hpp"
#include "parallel/rank_need.hpp"

namespace lethe::bench {
namespace {

[[gnu::format(printf, 1, 2)]] std::string text(const char* format, ...) {
  char line[1024];
  va_list values;
  va_start(values, format);
  int length = std::vsnprintf(line, sizeof line, format, values);
  va_end(values);
  check(length >= 0 && size_t(length) < sizeof line);
  return line;
}

const char* name_of(arithmetic how) { return how == arithmetic::tensor ? "tensor" : "exact"; }

class measurement {
 public:
  measurement(const measuring& m, const random_weights& weights, device_shard& shard,
              const run_sizes& sizes)
      : m_(m),
        weights_(weights.weights()),
        what_(text("\"model\":\"%s\",\"type\":\"%s\",\"arithmetic\":\"%s\"", m.model.c_str(),
                   lethe::name_of(weights.type()), name_of(m.row.arithmetic))),
        told_(m.model + " " + lethe::name_of(weights.type()) + " " + name_of(m.row.arithmetic)),
        sizes_(sizes),
        steps_(shard, weights_.shape, sizes) {}

  result<void> run() {
    for (uint32_t tokens : sizes_.prompts)
      if (auto done = prefill(tokens); !done) return done;
    if (auto filled = steps_.fill(sizes_.streams.back()); !filled) return filled;
    for (uint32_t streams : sizes_.streams)
      if (auto done = decode(streams); !done) return done;
    return steps_.wipe();
  }

 private:
  result<void> prefill(uint32_t tokens) {
    auto timed = steps_.prefill(tokens);
    if (!timed) return timed.why();
    spread s = spread_of(timed->seconds);
    double least = prompt_seconds(weights_, limits_of(0, m_.peaks), tokens),
           share = least / s.median;
    say("prefill", text("\"tokens\":%u", tokens), s, tokens,
        text("\"limit_ms\":%.3f,\"of_peak\":%.3f", least * 1e3, share),
        text("prompt of %u: %.0f tokens/s, %.2f of the matrix peak", tokens, tokens / s.median,
             share));
    return {};
  }

  result<void> decode(uint32_t streams) {
    copy_rates copy{.before = m_.copy_bytes_per_s()};
    auto timed = steps_.decode(streams);
    if (!timed) return timed.why();
    copy.after = m_.copy_bytes_per_s();
    if (auto same = check_answers(*timed); !same) return same;
    spread s = spread_of(timed->seconds);
    double bytes = decode_bytes(weights_, kv_type::bf16, streams, sizes_.seen());
    double rate = bytes / s.median, share = rate / copy.better();
    const char* unsteady = copy.steady() ? "" : " (noisy: nothing is claimed)";
    say("decode", text("\"streams\":%u,\"context\":%u", streams, sizes_.context), s, streams,
        text("\"bytes\":%.0f,\"gb_per_s\":%.1f,\"copy_gb_per_s\":[%.1f,%.1f],\"steady\":%s,"
             "\"of_copy\":%.3f",
             bytes, rate * 1e-9, copy.before * 1e-9, copy.after * 1e-9,
             copy.steady() ? "true" : "false", share),
        text("%u streams: %.1f tokens/s, %.2f of the copy's bandwidth%s", streams,
             streams / s.median, share, unsteady));
    return {};
  }

  /// Streams of the first run are among those of every later one.
  result<void> check_answers(const timed_steps& now) {
    for (size_t s = 0; s < std::min(said_.size(), now.answers.size()); ++s)
      if (now.answers[s] != said_[s])
        return fail("{}: stream {} of {} is answered otherwise than among {}", told_, s,
                    now.answers.size(), said_.size());
    said_ = now.answers;
    return {};
  }

  void say(const char* bench, const std::string& of, const spread& s, double tokens,
           const std::string& shares, const std::string& told) {
    m_.say(text("{\"bench\":\"model_%s\",\"by\":\"lethe\",%s,%s,\"ms\":%.4f,\"ms_p10\":%.4f,"
                "\"ms_p90\":%.4f,\"tokens_per_s\":%.1f,%s,\"device\":\"%s\",\"commit\":\"%s\"}",
                bench, what_.c_str(), of.c_str(), s.median * 1e3, s.p10 * 1e3, s.p90 * 1e3,
                tokens / s.median, shares.c_str(), m_.device.c_str(), m_.commit.c_str()),
           told_ + ": " + told);
  }

  const measuring& m_;
  const model_weights& weights_;
  const std::string what_, told_;
  const run_sizes& sizes_;
  model_steps steps_;
  std::vector<std::vector<uint32_t>> said_;
};

}  // namespace

uint64_t device_bytes(const random_weights& weights, const cuda_row& row, const run_sizes& sizes) {
  const model_weights& w = weights.weights();
  return device_need(w, config_for(w.shape, sizes), row.arithmetic).all();
}

result<void> measure(const measuring& m, const random_weights& weights, const run_sizes& sizes) {
  shard_config config = config_for(weights.weights().shape, sizes);
  auto loaded = device_weights::load(m.on, weights, config.part,
                                     {.threads = m.threads, .progress = m.loading});
  if (!loaded) return loaded.why();
  auto shard = device_shard::make(m.on, m.row, *std::move(loaded), {.shard = config});
  if (!shard) return shard.why();
  return measurement(m, weights, **shard, sizes).run();
}

}  // namespace lethe::bench

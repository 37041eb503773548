// What a decode step costs besides its arithmetic, measured through the actors: requests are placed
// by a scheduler, opened and answered by their own actors, and each piece is sealed and sent.
// Answers are checked first: each must say what the engine says to it alone.
// Prints one line of JSON for one stream and one for many.

#include <CLI/CLI.hpp>
#include <ctime>

#include "actors/cluster/node.hpp"
#include "bench/through_actors.hpp"

namespace lethe::bench {
namespace {

constexpr double limit_us = 30;

/// One step of the log, in nanoseconds.
struct step_seen {
  size_t entries;
  uint32_t tokens;
  uint64_t submitted, done, arithmetic;
  uint64_t loop_cpu, lead_cpu;  // of the loop's thread until now, and of the ranks' lead
};

/// Keeps all steps; read when nothing runs.
class step_log final : public step_watcher {
 public:
  void stepped(const step_plan& plan, uint64_t submitted_ns, uint64_t done_ns) override {
    const auto& t = serving->ranks().rank(0).times();
    uint64_t all = t.embed + t.norm + t.qkv + t.rope + t.attention + t.o + t.gate_up + t.down +
                   t.head + t.comm;
    timespec own{};
    check(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &own) == 0);
    uint64_t cpu = uint64_t(own.tv_sec) * 1'000'000'000 + uint64_t(own.tv_nsec);
    steps.push_back({plan.entries.size(), plan.tokens, submitted_ns, done_ns,
                     all - std::exchange(before_, all), cpu, t.lead_cpu});
  }
  const engine* serving = nullptr;
  std::vector<step_seen> steps;

 private:
  uint64_t before_ = 0;
};

/// Microseconds that the loop's thread had a processor for but did not compute with, for each step
/// of the full company that was computed on it. Who else runs on the machine doesn't count.
std::vector<double> rest_of_cpu(const std::vector<step_seen>& steps, uint32_t streams) {
  std::vector<double> us;
  for (size_t i = 1; i < steps.size(); ++i) {
    const auto &before = steps[i - 1], &s = steps[i];
    uint64_t all = s.loop_cpu - before.loop_cpu, computing = s.lead_cpu - before.lead_cpu;
    if (before.tokens == streams && s.tokens == streams && s.entries == streams && all > computing)
      us.push_back(double(all - computing) / 1000);
  }
  return us;
}

/// Microseconds between the end of a step and the sending of the piece that it made.
std::vector<double> piece_delays(const std::vector<stream>& streams,
                                 const std::vector<step_seen>& steps) {
  std::vector<double> us;
  for (const auto& s : streams)
    for (const auto& p : s.pieces) {
      auto after = std::ranges::upper_bound(steps, p.sent_ns, {}, &step_seen::done);
      if (after == steps.begin() || p.last) continue;
      us.push_back(double(p.sent_ns - std::prev(after)->done) / 1000);
    }
  return us;
}

void report(uint32_t streams, const std::vector<stream>& said,
            const std::vector<step_seen>& steps) {
  std::vector<double> whole, arithmetic, rest, handover, loop;
  for (size_t i = 0; i + 1 < steps.size(); ++i) {
    const auto &s = steps[i], &next = steps[i + 1];
    // Decodes of the full company, one after the other.
    if (s.entries != streams || s.tokens != streams || next.tokens != streams) continue;
    whole.push_back(double(next.submitted - s.submitted) / 1000);
    arithmetic.push_back(double(s.arithmetic) / 1000);
    rest.push_back(whole.back() - arithmetic.back());
    handover.push_back(double(s.done - s.submitted - s.arithmetic) / 1000);
    loop.push_back(double(next.submitted - s.done) / 1000);
  }
  check(rest.size() >= 30);
  auto r = spread_of(rest), cpu = spread_of(rest_of_cpu(steps, streams));
  fmt::print(
      "{{\"what\":\"step\",\"streams\":{},\"steps\":{},\"step_us\":{:.1f},\"arithmetic_us\":{:.1f},"
      "\"rest_us\":{:.1f},\"rest_us_p10\":{:.1f},\"rest_us_p90\":{:.1f},\"handover_us\":{:.1f},"
      "\"loop_us\":{:.1f},\"piece_us\":{:.1f},\"rest_cpu_us\":{:.1f},\"rest_cpu_us_p90\":{:.1f},"
      "\"limit_us\":{:.0f},\"of_limit\":{:.2f},\"cpu_of_limit\":{:.2f}}}\n",
      streams, rest.size(), spread_of(whole).median, spread_of(arithmetic).median, r.median, r.p10,
      r.p90, spread_of(handover).median, spread_of(loop).median,
      spread_of(piece_delays(said, steps)).median, cpu.median, cpu.p90, limit_us,
      r.median / limit_us, cpu.median / limit_us);
}

/// The answers of the run that is measured are checked, too.
bool measure_streams(small_cluster& c, step_log& log, uint32_t streams, uint32_t tokens) {
  if (!c.says_the_same(streams, tokens)) return false;
  log.steps.clear();
  auto said = c.run(streams, tokens);
  auto steps = log.steps;
  for (uint32_t i = 0; i < streams; ++i)
    if (text_of(said[i]) != alone(c.serving(), c.model(), prompt_of(i), tokens)) return false;
  report(streams, said, steps);
  return true;
}

int measure(const std::string& path, engine_config config, uint32_t tokens, uint32_t streams,
            uint32_t workers) {
  auto node = node_config::make({.threads = workers});
  if (!node) return fmt::print(stderr, "{}\n", node.why().text), 1;
  auto model = served_model::open({.path = path, .name = "bench"});
  if (!model) return fmt::print(stderr, "{}\n", model.why().text), 1;
  step_log log;
  config.watch = &log;
  small_cluster c(*model, config, {.mode = trace_mode::allowed}, **node);
  log.serving = &c.serving();
  for (uint32_t n : {1u, streams})
    if (!measure_streams(c, log, n, tokens))
      return fmt::print(stderr, "a stream says something else through the actors than alone\n"), 1;
  return 0;
}

}  // namespace
}  // namespace lethe::bench

int main(int argc, char** argv) {
  CLI::App app{"Measures what a decode step costs besides arithmetic", "step_bench"};
  std::string path;
  lethe::engine_config c{.threads = 1, .context = 1024};
  uint32_t tokens = 400, streams = 16, workers = 2;
  app.add_option("MODEL", path, "folder or GGUF file")->required();
  app.add_option("--tokens", tokens, "of each answer")->check(CLI::Range(64u, 900u));
  app.add_option("--streams", streams, "of the second line")->check(CLI::Range(1u, 64u));
  app.add_option("--threads", c.threads, "of the engine's rank");
  app.add_option("--workers", workers, "of the actor system")->check(CLI::Range(1u, 64u));
  CLI11_PARSE(app, argc, argv);
  return lethe::bench::measure(path, c, tokens, streams, workers);
}

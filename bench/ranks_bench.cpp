// What a barrier costs, and whether two ranks that share a layer are as fast as one rank with two
// threads: both engines on the same weights take turns, and must say the same. A line of JSON each.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <thread>

#include "bench/spread.hpp"
#include "bench/step_log.hpp"
#include "parallel/team.hpp"
#include "runtime/model/checkpoint.hpp"
#include "runtime/model/load.hpp"

namespace lethe::bench {
namespace {

using steady = std::chrono::steady_clock;

double ns_since(steady::time_point begin) {
  return std::chrono::duration<double, std::nano>(steady::now() - begin).count();
}

/// Threads that only meet, and count: none may pass before all have come.
bool barriers(uint32_t threads) {
  constexpr uint32_t meetings = 2000, rounds = 31;
  auto made = team::start(threads, true);
  check(bool(made));
  team& t = **made;
  std::vector<std::atomic<uint32_t>> passed(threads);
  std::atomic<bool> kept = true;
  t.run([&](uint32_t me) {
    for (uint32_t i = 0; i < meetings; ++i) {
      passed[me].fetch_add(1);
      t.meet();
      for (const auto& other : passed)
        if (other.load() <= i) kept = false;
      t.meet();
    }
  });
  if (!kept) return false;
  std::vector<double> ns;
  for (uint32_t r = 0; r < rounds; ++r) {
    auto begin = steady::now();
    t.run([&](uint32_t) {
      for (uint32_t i = 0; i < meetings; ++i) t.meet();
    });
    ns.push_back(ns_since(begin) / meetings);
  }
  auto s = spread_of(ns);
  fmt::print(
      "{{\"what\":\"barrier\",\"threads\":{},\"ns\":{:.1f},\"ns_p10\":{:.1f},\"ns_p90\":{:.1f}}}\n",
      threads, s.median, s.p10, s.p90);
  return true;
}

/// An engine, and the milliseconds of its decode steps and of its prompts.
struct side {
  step_log log;
  std::unique_ptr<engine> e;
  std::vector<double> decode_ms, prefill_ms;
  std::vector<uint32_t> said;
};

bool start(side& s, const model_weights& w, engine_config c) {
  c.watch = &s.log;
  auto e = engine::start(w, c);
  if (!e) return fmt::print(stderr, "{}\n", e.why().text), false;
  s.e = *std::move(e);
  s.log.serving = s.e.get();
  return true;
}

std::vector<uint32_t> answer(side& s, uint32_t vocab, uint32_t prompt, uint32_t tokens) {
  std::vector<uint32_t> ids;
  for (uint32_t i = 0; i < prompt; ++i)
    ids.push_back(100 + i * 7919 % std::min(30000u, vocab - 100));
  auto made = request::make(size_t{64} << 20);
  check(bool(made));
  request& r = **made;
  check(bool(r.ask({.prompt = ids, .max_tokens = tokens, .how = {.temperature = 0}}, vocab)));
  s.log.clear();
  check(bool(s.e->submit(r)));
  while (!r.gone()) r.wait(r.events());
  std::vector<uint32_t> said(r.choice(0).ids.begin(), r.choice(0).ids.end());
  r.forget();
  return said;
}

void take_turn(side& s, uint32_t vocab, uint32_t prompt, uint32_t tokens) {
  s.said = answer(s, vocab, prompt, tokens);
  const auto& steps = s.log.steps;
  size_t first = 0;
  while (first < steps.size() && steps[first].tokens > 1) ++first;
  check(first > 0 && first < steps.size());
  s.prefill_ms.push_back(double(steps[first - 1].done - steps[0].submitted) / 1e6);
  for (size_t i = first; i + 1 < steps.size(); ++i)
    s.decode_ms.push_back(double(steps[i + 1].submitted - steps[i].submitted) / 1e6);
}

void print_ranks(const side& ranks, const side& threads, uint32_t prompt) {
  auto rd = spread_of(ranks.decode_ms), td = spread_of(threads.decode_ms);
  auto rp = spread_of(ranks.prefill_ms), tp = spread_of(threads.prefill_ms);
  fmt::print(
      "{{\"what\":\"ranks\",\"prompt\":{},\"decode_ms_ranks\":{:.3f},\"decode_ms_threads\":{:.3f},"
      "\"decode_ms_threads_p90\":{:.3f},\"decode_ratio\":{:.3f},\"prefill_ms_ranks\":{:.2f},"
      "\"prefill_ms_threads\":{:.2f},\"prefill_ms_threads_p90\":{:.2f},\"prefill_ratio\":{:.3f}}}"
      "\n",
      prompt, rd.median, td.median, td.p90, td.median / rd.median, rp.median, tp.median, tp.p90,
      tp.median / rp.median);
}

int measure(const std::string& path, uint32_t count, uint32_t rounds, uint32_t prompt) {
  auto model = checkpoint::open(path);
  if (!model) return fmt::print(stderr, "{}\n", model.why().text), 1;
  auto loaded = loaded_model::load(*model, {.threads = std::thread::hardware_concurrency()});
  if (!loaded) return fmt::print(stderr, "{}\n", loaded.why().text), 1;
  const auto& w = (*loaded)->weights();
  constexpr uint32_t tokens = 24;
  side ranks, threads;
  rounds = std::max(rounds, 2u);
  // One engine at a time: the other's threads would spin beside it.
  for (uint32_t r = 0; r < rounds; ++r)
    for (bool turn : {r % 2 == 0, r % 2 == 1}) {
      side* s = turn ? &ranks : &threads;
      engine_config c{.threads = s == &ranks ? 1 : count, .context = prompt + tokens + 16};
      if (s == &ranks) c.ranks.tensor = count;
      if (!start(*s, w, c)) return 1;
      if (r == 0) answer(*s, w.shape.vocab, 16, 4);  // warm
      take_turn(*s, w.shape.vocab, prompt, tokens);
      s->e.reset();
    }
  if (ranks.said != threads.said)
    return fmt::print(stderr, "{} ranks say something else than one\n", count), 1;
  print_ranks(ranks, threads, prompt);
  return 0;
}

}  // namespace
}  // namespace lethe::bench

int main(int argc, char** argv) {
  CLI::App app{"Measures a barrier, and ranks against threads", "ranks_bench"};
  std::string path;
  uint32_t count = 2, rounds = 8, prompt = 256;
  app.add_option("MODEL", path, "folder or GGUF file; without one only barriers");
  app.add_option("--count", count, "ranks, and threads of the single rank")
      ->check(CLI::Range(2u, 8u));
  app.add_option("--rounds", rounds, "turns of each")->check(CLI::Range(2u, 1000u));
  app.add_option("--prompt", prompt, "tokens")->check(CLI::Range(32u, 8192u));
  CLI11_PARSE(app, argc, argv);
  for (uint32_t threads : {1u, count})
    if (!lethe::bench::barriers(threads))
      return fmt::print(stderr, "a barrier let a thread pass before all had come\n"), 1;
  return path.empty() ? 0 : lethe::bench::measure(path, count, rounds, prompt);
}

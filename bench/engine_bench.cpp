// Measures the engine on one model: decode of one stream, a prompt, many streams. Answers are
// checked first: the streams of a batch must say what each of them says alone.
// Prints one line of JSON per measurement.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <thread>

#include "runtime/batch/engine.hpp"
#include "runtime/model/checkpoint.hpp"
#include "runtime/model/load.hpp"

namespace lethe {
namespace {

using steady = std::chrono::steady_clock;

struct stream_run {
  std::unique_ptr<request> asked;
  std::vector<steady::time_point> times;  // of each token
  std::vector<uint32_t> ids;
};

/// The same walk through the vocabulary as peer.mjs takes.
std::vector<uint32_t> prompt_of(uint32_t stream, uint32_t tokens, uint32_t vocab) {
  uint32_t range = std::min(30000u, vocab - 100);
  std::vector<uint32_t> ids;
  for (uint32_t i = 0; i < tokens; ++i) ids.push_back(100 + (i * 7919 + stream * 104729) % range);
  return ids;
}

/// Starts them all, then follows each until it is gone, noting when tokens arrive.
std::vector<stream_run> run(engine& e, uint32_t vocab, uint32_t streams, uint32_t prompt,
                            uint32_t tokens) {
  std::vector<stream_run> runs(streams);
  for (uint32_t i = 0; i < streams; ++i) {
    auto made = request::make(size_t{64} << 20);
    check(bool(made));
    runs[i].asked = std::move(*made);
    auto ids = prompt_of(i, prompt, vocab);
    check(bool(runs[i].asked->ask({.prompt = ids, .max_tokens = tokens, .how = {.temperature = 0}},
                                  vocab)));
  }
  for (auto& r : runs) check(bool(e.submit(*r.asked)));
  std::vector<std::thread> readers;
  for (auto& r : runs)
    readers.emplace_back([&r] {
      for (uint32_t had = 0;;) {
        uint32_t seen = r.asked->events();
        uint32_t has = r.asked->choice(0).published.load(std::memory_order_acquire);
        for (auto now = steady::now(); had < has; ++had) r.times.push_back(now);
        if (r.asked->gone()) break;
        r.asked->wait(seen);
      }
      const auto& ids = r.asked->choice(0).ids;
      r.ids.assign(ids.begin(), ids.end());
    });
  for (auto& t : readers) t.join();
  for (auto& r : runs) r.asked->forget();
  return runs;
}

double seconds(steady::time_point from, steady::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

void print(const char* what, uint32_t streams, double tokens, double took, double weight_bytes,
           std::span<const uint32_t> ids) {
  std::printf(
      "{\"what\":\"%s\",\"streams\":%u,\"tokens_per_second\":%.2f,"
      "\"weight_gb_per_second\":%.2f,\"ids\":[",
      what, streams, tokens / took, weight_bytes / 1e9);
  for (size_t i = 0; i < std::min<size_t>(ids.size(), 16); ++i)
    std::printf("%s%u", i ? "," : "", ids[i]);
  std::printf("]}\n");
}

void decode(engine& e, uint32_t vocab, uint32_t tokens, size_t bytes) {
  auto r = run(e, vocab, 1, 16, tokens + 1);
  double took = seconds(r[0].times.front(), r[0].times.back());
  print("decode", 1, tokens, took, double(bytes) * tokens / took, r[0].ids);
}

void prefill(engine& e, uint32_t vocab, uint32_t tokens) {
  run(e, vocab, 1, std::min(tokens, 64u), 1);
  auto begin = steady::now();
  auto r = run(e, vocab, 1, tokens, 1);
  print("prefill", 1, tokens, seconds(begin, r[0].times.front()), 0, r[0].ids);
}

bool batch(engine& e, uint32_t vocab, uint32_t streams, uint32_t tokens, size_t bytes) {
  auto together = run(e, vocab, streams, 16, tokens + 1);
  auto alone = run(e, vocab, 1, 16, std::min(tokens + 1, 16u));
  if (!std::equal(alone[0].ids.begin(), alone[0].ids.end(), together[0].ids.begin())) return false;
  // Between the last one's first token and the first one's last, all streams make tokens.
  auto begin = together[0].times.front(), end = together[0].times.back();
  for (auto& r : together) {
    begin = std::max(begin, r.times.front());
    end = std::min(end, r.times.back());
  }
  size_t made = 0;
  for (auto& r : together)
    made += size_t(std::ranges::count_if(r.times, [&](auto t) { return begin < t && t <= end; }));
  double took = seconds(begin, end);
  print("batch", streams, double(made), took, double(bytes) * double(made) / streams / took,
        together[0].ids);
  return true;
}

/// How far another program's greedy answer is from ours: at each of its tokens, what our likeliest
/// is likelier by. Other roundings cost hundredths, a wrong product whole units.
int compare(engine& e, uint32_t vocab, std::span<const uint32_t> theirs) {
  auto ids = prompt_of(0, 16, vocab);
  size_t prompt = ids.size();
  ids.insert(ids.end(), theirs.begin(), theirs.end());
  auto made = request::make(size_t{64} << 20);
  check(bool(made));
  request& r = **made;
  sampling how{.temperature = 0, .want_logprob = true, .logprobs = 1};
  check(bool(r.ask({.prompt = ids, .max_tokens = 1, .how = how, .prompt_logprobs = true}, vocab)));
  check(bool(e.submit(r)));
  while (!r.gone()) r.wait(r.events());
  size_t agree = 0;
  double worst = 0;
  for (size_t i = prompt; i < ids.size(); ++i) {
    double gap = double(r.prompt_top()[i].logprob) - double(r.prompt_logprobs()[i]);
    agree += r.prompt_top()[i].id == ids[i];
    worst = std::max(worst, gap);
  }
  r.forget();
  std::printf("{\"what\":\"compare\",\"agree\":%zu,\"of\":%zu,\"worst_gap\":%.4f}\n", agree,
              theirs.size(), worst);
  return 0;
}

int measure(const std::string& path, engine_config c, uint32_t tokens, uint32_t prompt,
            uint32_t streams, std::span<const uint32_t> theirs) {
  auto model = checkpoint::open(path);
  if (!model) return fmt::print(stderr, "{}\n", model.why().text), 1;
  auto loaded = loaded_model::load(*model, {.threads = std::thread::hardware_concurrency()});
  if (!loaded) return fmt::print(stderr, "{}\n", loaded.why().text), 1;
  const auto& w = (*loaded)->weights();
  auto e = engine::start(w, c);
  if (!e) return fmt::print(stderr, "{}\n", e.why().text), 1;
  uint32_t vocab = w.shape.vocab;
  if (!theirs.empty()) return compare(**e, vocab, theirs);
  // A token reads every weight but the rows of the embedding that it does not name.
  size_t bytes = (*loaded)->bytes();
  if (!w.shape.tied) bytes -= matrix_bytes(w.embed.type, w.embed.rows, w.embed.cols);
  if (tokens) decode(**e, vocab, tokens, bytes);
  if (prompt) prefill(**e, vocab, prompt);
  if (streams && !batch(**e, vocab, streams, tokens ? tokens : 32, bytes))
    return fmt::print(stderr, "a stream says something else in a batch than alone\n"), 1;
  return 0;
}

}  // namespace
}  // namespace lethe

int main(int argc, char** argv) {
  CLI::App app{"Measures the engine on one model", "engine_bench"};
  std::string path, isa;
  std::vector<uint32_t> theirs;
  lethe::engine_config c{.context = 1024};
  uint32_t tokens = 32, prompt = 512, streams = 16;
  app.add_option("MODEL", path, "folder or GGUF file")->required();
  app.add_option("--tokens", tokens, "decoded for the single stream and each of the batch");
  app.add_option("--prompt", prompt, "tokens of the prompt; 0: skip");
  app.add_option("--streams", streams, "of the batch; 0: skip");
  app.add_option("--threads", c.threads);
  app.add_option("--tensor", c.ranks.tensor);
  app.add_option("--pipeline", c.ranks.pipeline);
  app.add_option("--chunk", c.chunk_tokens);
  app.add_option("--isa", isa);
  app.add_option("--compare", theirs, "only: judge another program's greedy ids for this prompt")
      ->delimiter(',');
  CLI11_PARSE(app, argc, argv);
  if (!isa.empty()) c.row = lethe::find_cpu_row(isa.c_str());
  c.context = std::max(c.context, prompt + 16);
  return lethe::measure(path, c, tokens, prompt, streams, theirs);
}

// Measures the engine on one model: prompts, and decode of some streams of a given context.
// Answers are checked first: a stream must say in company what it says alone. Prints one line of
// JSON per measurement, with the work that it took, for who compares with the machine's limits.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <thread>

#include "bench/model_work.hpp"
#include "bench/spread.hpp"
#include "bench/step_log.hpp"
#include "parallel/kv_pool.hpp"
#include "runtime/batch/planner.hpp"
#include "runtime/model/checkpoint.hpp"
#include "runtime/model/load.hpp"

namespace lethe::bench {
namespace {

using requests = std::vector<std::unique_ptr<request>>;

struct settings {
  uint32_t tokens = 32, context = 16;
  std::vector<uint32_t> prompts, streams;
};

struct bench {
  const model_weights& weights;
  engine& e;
  step_log& log;
  settings s;

  uint32_t vocab() const { return weights.shape.vocab; }
};

/// The same walk through the vocabulary as peer.mjs takes.
std::vector<uint32_t> prompt_of(uint32_t stream, uint32_t tokens, uint32_t vocab) {
  uint32_t range = std::min(30000u, vocab - 100);
  std::vector<uint32_t> ids;
  for (uint32_t i = 0; i < tokens; ++i) ids.push_back(100 + (i * 7919 + stream * 104729) % range);
  return ids;
}

std::unique_ptr<request> asked(bench& b, uint32_t stream, uint32_t prompt, uint32_t tokens) {
  auto made = request::make(size_t{64} << 20);
  check(bool(made));
  auto ids = prompt_of(stream, prompt, b.vocab());
  sampling greedy{.temperature = 0};
  check(bool((*made)->ask({.prompt = ids, .max_tokens = tokens, .how = greedy}, b.vocab())));
  return *std::move(made);
}

void until_gone(const request& r) {
  while (!r.gone()) r.wait(r.events());
}

std::vector<uint32_t> said(const request& r) {
  const auto& c = r.choice(0);
  uint32_t count = c.published.load(std::memory_order_acquire);
  return {c.ids.begin(), c.ids.begin() + count};
}

std::vector<uint32_t> says_alone(bench& b, uint32_t stream, uint32_t prompt, uint32_t tokens) {
  auto r = asked(b, stream, prompt, tokens);
  check(bool(b.e.submit(*r)));
  until_gone(*r);
  auto ids = said(*r);
  r->forget();
  return ids;
}

/// Both are what one stream says greedily; one may have been cut short.
bool agree(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
  size_t common = std::min(a.size(), b.size());
  return common > 0 && std::equal(a.begin(), a.begin() + ptrdiff_t(common), b.begin());
}

std::string first_of(const std::vector<uint32_t>& ids) {
  return fmt::format(
      "[{}]",
      fmt::join(ids.begin(), ids.begin() + std::min<ptrdiff_t>(16, ptrdiff_t(ids.size())), ","));
}

/// The last run of steps that decoded `streams` and nothing else, without its first two: those wipe
/// the pages of streams that have just ended.
std::span<const logged_step> steps_of(const std::vector<logged_step>& steps, uint32_t streams) {
  auto fits = [streams](const logged_step& s) {
    return s.entries == streams && s.tokens == streams;
  };
  auto last = std::find_if(steps.rbegin(), steps.rend(), fits);
  auto before = std::find_if_not(last, steps.rend(), fits);
  std::span run(before.base(), last.base());
  return run.subspan(std::min<size_t>(2, run.size()));
}

/// From the begin of a step to the begin of the next, so what lies between them counts.
void print_decode(const bench& b, std::span<const logged_step> steps, uint32_t streams,
                  const std::string& ids) {
  check(steps.size() >= 2);
  std::vector<double> ms;
  double keys = 0, attention = 0;
  for (size_t i = 0; i + 1 < steps.size(); ++i) {
    ms.push_back(double(steps[i + 1].submitted - steps[i].submitted) / 1e6);
    keys += double(steps[i].keys);
    attention += double(steps[i].attention) / 1e6;
  }
  double count = double(ms.size());
  double took = double(steps.back().submitted - steps.front().submitted) / 1e9;
  auto spread = spread_of(ms);
  const auto& shape = b.weights.shape;
  model_work w = work_of(b.weights, streams, streams);
  fmt::print(
      "{{\"what\":\"decode\",\"streams\":{},\"context\":{:.0f},\"steps\":{},"
      "\"tokens_per_second\":{:.3f},\"step_ms\":{:.3f},\"step_ms_p10\":{:.3f},"
      "\"step_ms_p90\":{:.3f},\"attention_share\":{:.4f},\"weight_bytes\":{:.0f},"
      "\"kv_bytes\":{:.0f},\"int8_ops\":{:.0f},\"float_ops\":{:.0f},\"attention_ops\":{:.0f},"
      "\"ids\":{}}}\n",
      streams, keys / count / streams, ms.size(), streams * count / took, spread.median, spread.p10,
      spread.p90, attention / 1e3 / took, weight_bytes(b.weights),
      kv_token_bytes(shape, b.e.config().kv) * keys / count, w.int8_ops, w.float_ops,
      attention_ops(shape, keys / count, shape.layers), ids);
}

/// Whether that many steps with `left` streams were seen before one of them ended.
bool seen_long_enough(const step_log& log, const requests& running, uint32_t left, uint32_t steps) {
  while (log.of_size(left) < steps) {
    for (uint32_t i = 0; i < left; ++i)
      if (running[i]->gone()) return false;
    // Rarely enough that it takes nothing from the ranks.
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

/// Begins as many streams as the first level has; when a level has been seen for long enough,
/// streams are cancelled until the next one's are left. A prompt is computed once for all levels.
bool decode(bench& b) {
  auto levels = b.s.streams;
  std::ranges::sort(levels, std::greater<>{});
  // Who begins first decodes while the others' prompts are computed.
  uint32_t steps = b.s.tokens + 3, ahead = levels[0] * (b.s.context / prompt_tokens_least + 2);
  uint32_t longest = steps * uint32_t(levels.size()) + ahead + 64;
  b.log.clear();
  requests running;
  for (uint32_t i = 0; i < levels[0]; ++i) running.push_back(asked(b, i, b.s.context, longest));
  for (auto& r : running) check(bool(b.e.submit(*r)));
  std::vector<std::vector<uint32_t>> ids(levels[0]);
  for (size_t l = 0; l < levels.size(); ++l) {
    if (!seen_long_enough(b.log, running, levels[l], steps))
      return fmt::print(stderr, "a stream of {} ended early\n", levels[l]), false;
    uint32_t left = l + 1 < levels.size() ? levels[l + 1] : 0;
    for (uint32_t i = left; i < levels[l]; ++i) b.e.cancel(*running[i]);
    for (uint32_t i = left; i < levels[l]; ++i) {
      until_gone(*running[i]);
      ids[i] = said(*running[i]);
      running[i]->forget();
    }
  }
  auto steps_seen = b.log.steps;
  for (uint32_t i : {0u, levels[0] - 1})
    if (levels[0] > 1 && !agree(ids[i], says_alone(b, i, b.s.context, 16))) return false;
  for (uint32_t n : levels) print_decode(b, steps_of(steps_seen, n), n, first_of(ids[0]));
  return true;
}

/// A short prompt is also computed in the company of another, in other pieces: the same token must
/// come. For a long one that would take too long.
bool prefill(bench& b, uint32_t tokens) {
  auto alone = says_alone(b, 0, std::min(tokens, 64u), 1);  // warm
  b.log.clear();
  auto first = says_alone(b, 0, tokens, 1);
  auto steps = b.log.steps;
  if (tokens <= 1024) {
    requests both;
    for (uint32_t i : {1u, 0u}) both.push_back(asked(b, i, tokens, 1));
    for (auto& r : both) check(bool(b.e.submit(*r)));
    for (auto& r : both) until_gone(*r);
    bool same = said(*both[1]) == first;
    for (auto& r : both) r->forget();
    if (!same) return false;
  }
  double took = double(steps.back().done - steps.front().submitted) / 1e9;
  double keys = 0, attention = 0;
  for (const auto& s : steps) keys += double(s.keys), attention += double(s.attention) / 1e9;
  const auto& shape = b.weights.shape;
  model_work w = work_of(b.weights, tokens, 1);
  // Of the last layer only the last token's query counts.
  double pairs = attention_ops(shape, keys, shape.layers - 1) + attention_ops(shape, tokens, 1);
  fmt::print(
      "{{\"what\":\"prefill\",\"tokens\":{},\"seconds\":{:.4f},\"tokens_per_second\":{:.2f},"
      "\"attention_share\":{:.4f},\"int8_ops\":{:.0f},\"float_ops\":{:.0f},"
      "\"attention_ops\":{:.0f},\"ids\":{}}}\n",
      tokens, took, tokens / took, attention / took, w.int8_ops, w.float_ops, pairs,
      first_of(first));
  return true;
}

/// How far another program's greedy answer is from ours: at each of its tokens, what our likeliest
/// is likelier by. Other roundings cost hundredths, a wrong product whole units.
int compare(bench& b, std::span<const uint32_t> theirs) {
  auto ids = prompt_of(0, 16, b.vocab());
  size_t prompt = ids.size();
  ids.insert(ids.end(), theirs.begin(), theirs.end());
  auto made = request::make(size_t{64} << 20);
  check(bool(made));
  request& r = **made;
  sampling how{.temperature = 0, .want_logprob = true, .logprobs = 1};
  check(bool(
      r.ask({.prompt = ids, .max_tokens = 1, .how = how, .prompt_logprobs = true}, b.vocab())));
  check(bool(b.e.submit(r)));
  until_gone(r);
  size_t agreeing = 0;
  double worst = 0;
  for (size_t i = prompt; i < ids.size(); ++i) {
    double gap = double(r.prompt_top()[i].logprob) - double(r.prompt_logprobs()[i]);
    agreeing += r.prompt_top()[i].id == ids[i];
    worst = std::max(worst, gap);
  }
  r.forget();
  fmt::print("{{\"what\":\"compare\",\"agree\":{},\"of\":{},\"worst_gap\":{:.4f}}}\n", agreeing,
             theirs.size(), worst);
  return 0;
}

/// Room for all streams, and for the longest prompt.
void size_memory(engine_config& c, const model_shape& shape, const settings& s) {
  uint32_t streams = s.streams.empty() ? 1 : std::ranges::max(s.streams);
  uint32_t per_stream = s.context + (s.tokens + 3) * uint32_t(s.streams.size()) +
                        streams * (s.context / prompt_tokens_least + 2) + 128;
  uint32_t longest = s.prompts.empty() ? 64 : std::ranges::max(s.prompts);
  c.context = std::max({c.context, per_stream, longest + 16});
  c.page_tokens = c.page_size();
  uint64_t tokens = std::max<uint64_t>(uint64_t{streams} * (per_stream + c.page_tokens),
                                       2 * (uint64_t{c.context} + c.page_tokens));
  kv_layout page{shape.layers, shape.kv_heads, shape.head_dim, c.page_tokens, c.kv};
  c.kv_bytes = (tokens / c.page_tokens + 2) * page.page_bytes();
}

int measure(const std::string& path, engine_config c, const settings& s,
            std::span<const uint32_t> theirs) {
  auto model = checkpoint::open(path);
  if (!model) return fmt::print(stderr, "{}\n", model.why().text), 1;
  auto loaded = loaded_model::load(*model, {.threads = std::thread::hardware_concurrency()});
  if (!loaded) return fmt::print(stderr, "{}\n", loaded.why().text), 1;
  const auto& w = (*loaded)->weights();
  size_memory(c, w.shape, s);
  step_log log;
  c.watch = &log;
  auto e = engine::start(w, c);
  if (!e) return fmt::print(stderr, "{}\n", e.why().text), 1;
  log.serving = e->get();
  bench b{w, **e, log, s};
  if (!theirs.empty()) return compare(b, theirs);
  bool same = s.streams.empty() || decode(b);
  for (uint32_t tokens : s.prompts) same = same && prefill(b, tokens);
  if (!same) fmt::print(stderr, "a stream says something else in company than alone\n");
  return same ? 0 : 1;
}

}  // namespace
}  // namespace lethe::bench

int main(int argc, char** argv) {
  CLI::App app{"Measures the engine on one model", "engine_bench"};
  std::string path, isa;
  std::vector<uint32_t> theirs;
  lethe::engine_config c{.context = 1024};
  lethe::bench::settings s;
  std::map<std::string, lethe::kv_type> kinds{
      {"f32", lethe::kv_type::f32}, {"bf16", lethe::kv_type::bf16}, {"int8", lethe::kv_type::int8}};
  app.add_option("MODEL", path, "folder or GGUF file")->required();
  app.add_option("--streams", s.streams, "decode this many at once; several: 32,16,1")
      ->delimiter(',')
      ->check(CLI::Range(1u, 64u));
  app.add_option("--context", s.context, "tokens of prompt that each stream begins with")
      ->check(CLI::Range(1u, 65536u));
  app.add_option("--tokens", s.tokens, "steps that are timed for each number of streams")
      ->check(CLI::Range(2u, 4096u));
  app.add_option("--prompt", s.prompts, "compute prompts of this many tokens; several: 512,4096")
      ->delimiter(',')
      ->check(CLI::Range(2u, 65536u));
  app.add_option("--threads", c.threads, "of each rank");
  app.add_option("--tensor", c.ranks.tensor);
  app.add_option("--pipeline", c.ranks.pipeline);
  app.add_option("--chunk", c.chunk_tokens);
  app.add_option("--kv", c.kv, "type of keys and values: f32, bf16, int8")
      ->transform(CLI::CheckedTransformer(kinds).description("TYPE"));
  app.add_option("--isa", isa);
  app.add_option("--compare", theirs, "only: judge another program's greedy ids for this prompt")
      ->delimiter(',');
  CLI11_PARSE(app, argc, argv);
  if (!isa.empty()) {
    c.row = lethe::find_cpu_row(isa.c_str());
    if (c.row == nullptr) {
      fmt::print(stderr, "engine_bench: no kernels are called --isa {}\n", isa);
      return 1;
    }
    if (!lethe::runs_here(*c.row))
      fmt::print(stderr, "engine_bench: {} is not for this machine; tried anyway\n", isa);
  }
  if (s.streams.empty() && s.prompts.empty()) s.streams = {1}, s.prompts = {512};
  return lethe::bench::measure(path, c, s, theirs);
}

// Attention alone, in the shape of Llama-3.2-1B: keys and values of all layers in pages as the
// engine has them, a rank's threads that share out the key/value heads. For each type of cache one
// token against a context (bound by reading), and a prompt (bound by arithmetic). Answers are
// compared with a plain computation in doubles first. Prints a line of JSON for each. One token's
// keys and values come out of memory: four times the last cache is taken for them.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <span>
#include <string>
#include <thread>

#include "bench/beyond_caches.hpp"
#include "bench/spread.hpp"
#include "parallel/kv_pool.hpp"
#include "parallel/region.hpp"
#include "parallel/stage.hpp"
#include "parallel/team.hpp"
#include "runtime/base/limits.hpp"
#include "runtime/model/quantize.hpp"

namespace lethe::bench {
namespace {

using steady = std::chrono::steady_clock;

constexpr uint32_t layers = 16, kv_heads = 8, group = 4, head_dim = 64;
constexpr uint32_t heads = kv_heads * group, q_cols = heads * head_dim;

struct cache {
  kv_pool pool;
  std::vector<uint32_t> pages;

  kv_view view(uint32_t layer, uint32_t head, uint32_t first_page = 0) const {
    return pool.view(layer, head, pages.data() + first_page);
  }
  double token_bytes() const { return 2.0 * kv_row_bytes(pool.layout().type, head_dim); }
};

/// Floats as a step's activations lie.
struct floats {
  explicit floats(size_t count) : memory(map(count)) {}
  float* data() const { return reinterpret_cast<float*>(memory.data()); }
  static region map(size_t count) {
    auto made = region::map(count * sizeof(float), "floats");
    check(bool(made));
    return *std::move(made);
  }
  region memory;
};

/// What attention works on besides the cache.
struct desk {
  const cpu_row& row;
  team& threads;
  // Each thread's part of the scratch begins on a cache line of its own.
  size_t scratch_floats =
      (attention_scratch_floats(attention_block, group, head_dim) + 31) / 16 * 16;
  floats q, out, scratch;

  desk(const cpu_row& r, team& t, uint32_t tokens)
      : row(r),
        threads(t),
        q(size_t{tokens} * q_cols),
        out(size_t{tokens} * q_cols),
        scratch(scratch_floats * t.size()) {
    std::mt19937 random(3);
    std::normal_distribution<float> draw;
    for (float& v : std::span(q.data(), size_t{tokens} * q_cols)) v = draw(random);
  }
  float* scratch_of(uint32_t thread) { return scratch.data() + thread * scratch_floats; }
};

uint32_t pages_of(uint32_t tokens, uint32_t page_tokens) {
  return (tokens + page_tokens - 1) / page_tokens;
}

/// As many contexts of each length as rounds take turns with, and room for the prompt. Random rows,
/// at another offset of one table for each head and chunk: enough for speed, and for answers that
/// differ.
result<cache> filled(kv_type type, uint32_t page_tokens, uint32_t prompt,
                     const std::vector<uint32_t>& contexts, const cpu_row& row) {
  if (page_tokens == 0) page_tokens = usual_page_tokens(type);
  uint32_t pages = pages_of(prompt, page_tokens);
  for (uint32_t context : contexts) {
    size_t bytes = size_t{2} * kv_row_bytes(type, head_dim) * kv_heads * layers * context;
    size_t turns = rounds_beyond_caches(bytes);
    pages = std::max(pages, uint32_t(turns * pages_of(context, page_tokens)));
  }
  uint32_t tokens = pages * page_tokens;
  auto pool = kv_pool::make({layers, kv_heads, head_dim, page_tokens, type}, pages);
  if (!pool) return pool.why();
  cache c{*std::move(pool), {}};
  for (uint32_t p = 0; p < pages; ++p) c.pages.push_back(p), c.pool.touch(p);
  constexpr uint32_t chunk = 256, offsets = 1021;
  std::vector<float> table(chunk * head_dim + offsets);
  std::mt19937 random(5);
  std::normal_distribution<float> draw;
  for (float& v : table) v = draw(random);
  for (uint32_t at = 0; at < tokens; at += chunk)
    for (uint32_t i = 0; i < layers * kv_heads; ++i) {
      const float* k = table.data() + (at / chunk * 131 + i * 17) % offsets;
      const float* v = table.data() + (at / chunk * 37 + i * 101 + 5) % offsets;
      row.kv_store(c.view(i / kv_heads, i % kv_heads), at, std::min(chunk, tokens - at), k, v,
                   head_dim);
    }
  return c;
}

/// A key or a value in its page: groups of numbers, so many bytes apart, and their scale.
struct stored {
  const std::byte* numbers;
  size_t group, step;
  const std::byte* scale;
};

stored key_at(const kv_view& kv, uint32_t token) {
  size_t bytes = kv_row_bytes(kv.type, head_dim), row = token % kv.page_tokens;
  size_t size = kv_number_bytes(kv.type), group = kv_key_group(kv.type);
  const std::byte* keys =
      kv.pool + kv.pages[token / kv.page_tokens] * kv.page_bytes + kv.key_offset;
  return {keys + row * group * size, group, kv.page_tokens * group * size,
          keys + kv.page_tokens * (bytes - 4) + 4 * row};
}

stored value_at(const kv_view& kv, uint32_t token) {
  size_t row = token % kv.page_tokens, scale = kv.type == kv_type::int8 ? 4 : 0;
  size_t bytes = kv_row_bytes(kv.type, head_dim) - scale;
  const std::byte* values =
      kv.pool + kv.pages[token / kv.page_tokens] * kv.page_bytes + kv.value_offset;
  size_t rows = kv_value_group(kv.type, kv.page_tokens);
  return {values + row / rows * rows * bytes + row % rows, 1, kv_number_bytes(kv.type) * rows,
          values + kv.page_tokens * bytes + 4 * row};
}

std::vector<double> numbers_of(kv_type type, const stored& at) {
  std::vector<double> values(head_dim);
  float scale = 1;
  if (type == kv_type::int8) std::memcpy(&scale, at.scale, sizeof scale);
  for (uint32_t i = 0; i < head_dim; ++i) {
    float f = 0;
    uint16_t half = 0;
    const std::byte* number = at.numbers + i / at.group * at.step + i % at.group;
    switch (type) {
      case kv_type::f32:
        std::memcpy(&f, number, sizeof f);
        break;
      case kv_type::bf16:
        std::memcpy(&half, number, sizeof half);
        f = f32_of_bf16(half);
        break;
      case kv_type::int8:
        f = float(int8_t(*number));
        break;
    }
    values[i] = double(f) * double(scale);
  }
  return values;
}

/// A query with its scale; for int8 keys as 127ths of its greatest number, as they are.
std::vector<double> query_for(kv_type type, const float* q) {
  std::vector<double> numbers(head_dim);
  for (uint32_t i = 0; i < head_dim; ++i) numbers[i] = q[i] / std::sqrt(double(head_dim));
  if (type != kv_type::int8) return numbers;
  float scale = 1 / std::sqrt(float(head_dim)), most = 0;
  for (uint32_t i = 0; i < head_dim; ++i) most = std::max(most, std::abs(q[i] * scale));
  for (uint32_t i = 0; i < head_dim; ++i)
    numbers[i] = double(std::nearbyint(q[i] * scale * (127 / most))) * (most / 127);
  return numbers;
}

/// One query head of one token at `position`, from what the pages hold.
std::vector<double> plain(const kv_view& kv, const float* q, uint32_t position) {
  std::vector<double> weights, query = query_for(kv.type, q);
  for (uint32_t t = 0; t <= position; ++t) {
    auto key = numbers_of(kv.type, key_at(kv, t));
    double dot = 0;
    for (uint32_t i = 0; i < head_dim; ++i) dot += key[i] * query[i];
    weights.push_back(dot);
  }
  double most = std::ranges::max(weights), total = 0;
  for (double& w : weights) total += w = std::exp(w - most);
  std::vector<double> sum(head_dim);
  for (uint32_t t = 0; t <= position; ++t) {
    auto value = numbers_of(kv.type, value_at(kv, t));
    for (uint32_t i = 0; i < head_dim; ++i) sum[i] += weights[t] / total * value[i];
  }
  return sum;
}

/// `tokens` queries from `position` on against one head, by one thread.
void attend(desk& d, const cache& c, uint32_t layer, uint32_t head, uint32_t first,
            uint32_t position, uint32_t tokens, uint32_t thread, uint32_t first_page = 0) {
  size_t at = size_t{first} * q_cols + size_t{head} * group * head_dim;
  d.row.attend({.kv = c.view(layer, head, first_page),
                .q = d.q.data() + at,
                .q_stride = q_cols,
                .out = d.out.data() + at,
                .out_stride = q_cols,
                .position = position,
                .tokens = tokens,
                .heads = group,
                .window = 0,
                .scale = 1 / std::sqrt(float(head_dim)),
                .scratch = d.scratch_of(thread)});
}

/// All layers of one token that sees `context` keys, those from some page on, as a step of decode
/// has them.
void decode(desk& d, const cache& c, uint32_t context, uint32_t first_page) {
  d.threads.run([&](uint32_t thread) {
    for (uint32_t l = 0; l < layers; ++l) {
      for (uint32_t h = thread; h < kv_heads; h += d.threads.size())
        attend(d, c, l, h, 0, context - 1, 1, thread, first_page);
      d.threads.meet();
    }
  });
}

/// One layer of a prompt, in blocks that threads take as they get free, a head's in turn.
void prefill(desk& d, const cache& c, uint32_t tokens) {
  std::atomic<uint32_t> next = 0;
  uint32_t blocks = attention_blocks(tokens);
  d.threads.run([&](uint32_t thread) {
    for (uint32_t i; (i = next.fetch_add(1)) < blocks * kv_heads;) {
      uint32_t first = i % blocks * attention_block;
      attend(d, c, 0, i / blocks, first, first, std::min(attention_block, tokens - first), thread);
    }
  });
}

/// Relative to the greatest number of the answer; where queries and weights are rounded, by that.
bool is_right(const desk& d, const cache& c, uint32_t layer, uint32_t head, uint32_t token,
              uint32_t position, uint32_t first_page = 0) {
  for (uint32_t g : {0u, group - 1}) {
    size_t at = size_t{token} * q_cols + (size_t{head} * group + g) * head_dim;
    auto expected = plain(c.view(layer, head, first_page), d.q.data() + at, position);
    double most = 0, worst = 0;
    for (uint32_t i = 0; i < head_dim; ++i) {
      most = std::max(most, std::abs(expected[i]));
      double off = std::abs(expected[i] - double(d.out.data()[at + i]));
      worst = std::isfinite(off) ? std::max(worst, off) : INFINITY;
    }
    bool rounds = d.row.round && c.view(layer, head).type == kv_type::bf16;
    if (!(worst <= (rounds ? 0x1p-6 : 1e-4) * most)) return false;
  }
  return true;
}

/// Milliseconds of each round: as many as two seconds have, three at least.
template <class Work>
std::vector<double> timed(Work&& work) {
  std::vector<double> ms;
  auto begin = steady::now();
  while (ms.size() < 3 || steady::now() - begin < std::chrono::seconds(2)) {
    auto now = steady::now();
    work();
    ms.push_back(std::chrono::duration<double, std::milli>(steady::now() - now).count());
  }
  return ms;
}

void print(const char* what, const std::string& type, uint32_t context, double bytes, double ops,
           const std::vector<double>& ms) {
  auto s = spread_of(ms);
  fmt::print(
      "{{\"what\":\"{}\",\"kv\":\"{}\",\"context\":{},\"rounds\":{},\"ms\":{:.3f},\"ms_p10\":{:.3f}"
      ","
      "\"ms_p90\":{:.3f},\"kv_bytes\":{:.0f},\"attention_ops\":{:.0f},\"kv_gb_per_second\":{:.2f},"
      "\"gflop_per_second\":{:.1f}}}\n",
      what, type, context, ms.size(), s.median, s.p10, s.p90, bytes, ops, bytes / s.median / 1e6,
      ops / s.median / 1e6);
}

/// Rounds take turns with keys and values, so that they come out of memory: between two steps of a
/// model its weights are read.
bool measure_decode(desk& d, const cache& c, const std::string& type, uint32_t context) {
  uint32_t pages = pages_of(context, c.pool.layout().page_tokens);
  uint32_t turns = uint32_t(c.pages.size()) / pages, turn = 0;
  for (uint32_t first_page : {0u, (turns - 1) * pages}) {
    decode(d, c, context, first_page);  // leaves the last layer's answer
    for (uint32_t head : {0u, kv_heads - 1})
      if (!is_right(d, c, layers - 1, head, 0, context - 1, first_page)) return false;
  }
  auto ms = timed([&] { decode(d, c, context, turn++ % turns * pages); });
  print("attention_decode", type, context, c.token_bytes() * kv_heads * layers * context,
        4.0 * q_cols * context * layers, ms);
  return true;
}

bool measure_prefill(desk& d, const cache& c, const std::string& type, uint32_t tokens) {
  prefill(d, c, tokens);
  for (uint32_t token : {0u, tokens / 2, tokens - 1})
    for (uint32_t head : {0u, kv_heads - 1})
      if (!is_right(d, c, 0, head, token, token)) return false;
  auto ms = timed([&] { prefill(d, c, tokens); });
  double pairs = double(tokens) * (tokens + 1) / 2;
  print("attention_prefill", type, tokens, c.token_bytes() * kv_heads * tokens,
        4.0 * q_cols * pairs, ms);
  return true;
}

struct flags {
  uint32_t threads = std::thread::hardware_concurrency(), prompt = 4096, page_tokens = 0;
  std::vector<uint32_t> contexts{4096, 16384};
  std::vector<std::string> kv{"f32", "bf16", "int8"};
  std::string isa = best_cpu_row().name;
};

const std::map<std::string, kv_type> types{
    {"f32", kv_type::f32}, {"bf16", kv_type::bf16}, {"int8", kv_type::int8}};

int measure(flags f) {
  const cpu_row* row = find_cpu_row(f.isa.c_str());
  if (row == nullptr || !runs_here(*row))
    return fmt::print(stderr, "--isa: no {} here\n", f.isa), 1;
  auto t = team::start(f.threads, true);
  if (!t) return fmt::print(stderr, "{}\n", t.why().text), 1;
  std::erase(f.contexts, 0u);
  desk d(*row, **t, std::max(f.prompt, 1u));
  for (const auto& name : f.kv) {
    auto c = filled(types.at(name), f.page_tokens, f.prompt, f.contexts, d.row);
    if (!c) return fmt::print(stderr, "{}\n", c.why().text), 1;
    bool right = true;
    for (uint32_t context : f.contexts) right = right && measure_decode(d, *c, name, context);
    if (f.prompt > 0) right = right && measure_prefill(d, *c, name, f.prompt);
    if (!right)
      return fmt::print(stderr, "attention over {} keys is not what doubles say\n", name), 1;
  }
  return 0;
}

}  // namespace
}  // namespace lethe::bench

int main(int argc, char** argv) {
  CLI::App app{"Measures attention alone", "attention_bench"};
  lethe::bench::flags f;
  app.add_option("--threads", f.threads)->check(CLI::Range(1u, 64u))->capture_default_str();
  app.add_option("--kv", f.kv, "types of keys and values; several: f32,int8")
      ->delimiter(',')
      ->check(CLI::IsMember(lethe::bench::types))
      ->capture_default_str();
  app.add_option("--context", f.contexts, "keys that one token sees; several: 4096,16384; 0: none")
      ->delimiter(',')
      ->check(CLI::Range(0u, 131072u))
      ->capture_default_str();
  app.add_option("--prompt", f.prompt, "tokens of the prompt, 2 or more; 0: none")
      ->check(CLI::IsMember({0}) | CLI::Range(2u, 32768u))
      ->capture_default_str();
  app.add_option("--page-size", f.page_tokens, "tokens in a page; default: an engine's")
      ->check(CLI::Range(1u, lethe::limits::page_tokens_max));
  app.add_option("--isa", f.isa, "whose kernels; default: the best here");
  CLI11_PARSE(app, argc, argv);
  return lethe::bench::measure(f);
}

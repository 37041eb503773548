#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "tests/cuda/target.hpp"
#include "tests/unit/kernels_attend_paged.hpp"

namespace lethe {

extern const cpu_row reference;

namespace {

/// One request's share of a step: `before` of its tokens are stored already.
struct request {
  uint32_t before, tokens;
};

constexpr uint32_t run_tokens = 32;  // of what is stored

struct step {
  std::vector<request> requests;
  uint32_t head_dim = 64, kv_heads = 1, group = 1;
  uint32_t heads = 0, first_head = 0;  // of all query heads, those of the rank; 0: all
  uint32_t window = 0, page_tokens = 16;
  kv_type type = kv_type::f32;

  uint32_t query_heads() const { return heads ? heads : kv_heads * group; }
  uint32_t q_cols() const { return query_heads() * head_dim; }
  uint32_t kv_cols() const { return kv_heads * head_dim; }
  uint32_t tokens_max() const {
    uint32_t most = 0;
    for (const request& r : requests) most = std::max(most, r.tokens);
    return most;
  }
};

/// Runs of a step over pages in no order. Rows of x, of the output and page tables lie one request
/// after the other; `stored` are all tokens so far, as if one step had them.
struct laid_out {
  std::vector<token_run> stored, runs;
  std::vector<uint32_t> pages;
  uint32_t rows = 0, stored_rows = 0;
  size_t half_bytes, page_bytes;
  uint32_t page_count = 1;  // page 0 is nobody's

  explicit laid_out(const step& s) {
    half_bytes = (size_t{s.page_tokens} * kv_row_bytes(s.type, s.head_dim) + 3) / 4 * 4;
    page_bytes = 2 * half_bytes * s.kv_heads + 12;
    for (const request& r : s.requests) {
      uint32_t all = r.before + r.tokens, first_page = uint32_t(pages.size());
      for (uint32_t t = 0; t < all; t += run_tokens) {
        stored.push_back({stored_rows + t, 0, t, std::min(run_tokens, all - t), first_page});
      }
      runs.push_back({rows, rows + 1, r.before, r.tokens, first_page});
      rows += r.tokens;
      stored_rows += all;
      for (uint32_t p = 0; p < all; p += s.page_tokens) pages.push_back(page_count++);
    }
    std::shuffle(pages.begin(), pages.end(), std::mt19937(7));
  }
};

device_kv kv_of(const step& s, const laid_out& at, std::byte* pool, const uint32_t* pages) {
  return {pool,  at.page_bytes, 4,      4 + at.half_bytes, 2 * at.half_bytes,
          pages, s.page_tokens, s.type, s.head_dim};
}
kv_view view_of(const device_kv& kv, uint32_t kv_head, uint32_t first_page) {
  return {kv.pool,
          kv.page_bytes,
          kv.key_offset + kv_head * kv.head_bytes,
          kv.value_offset + kv_head * kv.head_bytes,
          kv.pages + first_page,
          kv.page_tokens,
          kv.type,
          kv.head_dim};
}

struct numbers {
  std::vector<float> q, k, v;
  numbers(const step& s, const laid_out& at)
      : q(normal_floats(size_t{at.rows} * s.q_cols(), 1, 1.5f)),
        k(normal_floats(size_t{at.stored_rows} * s.kv_cols(), 2)),
        v(normal_floats(size_t{at.stored_rows} * s.kv_cols(), 3)) {}
};

void store_by_reference(const step& s, const laid_out& at, const numbers& in, const device_kv& kv) {
  for (const token_run& run : at.stored) {
    for (uint32_t h = 0; h < s.kv_heads; h++) {
      size_t from = size_t{run.row} * s.kv_cols() + h * s.head_dim;
      reference.kv_store(view_of(kv, h, run.first_page), run.position, run.tokens,
                         in.k.data() + from, in.v.data() + from, s.kv_cols());
    }
  }
}

/// What all queries of a request have left behind belongs to nobody any more.
void free_unseen(const step& s, const laid_out& at, std::vector<uint32_t>& pages) {
  for (const token_run& run : at.runs) {
    bool all_seen = s.window == 0 || run.position < s.window;
    uint32_t first = all_seen ? 0 : run.position + 1 - s.window;
    for (uint32_t p = 0; p < first / s.page_tokens; p++) pages[run.first_page + p] = 0;
  }
}

/// As parallel/stage does: for each kv head the rank's query heads that read it.
void attend_by_reference(const step& s, const laid_out& at, const numbers& in, const device_kv& kv,
                         std::vector<float>& out) {
  for (const token_run& run : at.runs) {
    for (uint32_t h = 0; run.tokens != 0 && h < s.query_heads(); h++) {
      std::vector<float> scratch(attention_scratch_floats(run.tokens, 1, s.head_dim) + 16);
      float* aligned = scratch.data();
      while (reinterpret_cast<uintptr_t>(aligned) % 64 != 0) aligned++;
      size_t column = size_t{h} * s.head_dim;
      reference.attend({view_of(kv, (s.first_head + h) / s.group, run.first_page),
                        in.q.data() + size_t{run.row} * s.q_cols() + column, s.q_cols(),
                        out.data() + size_t{run.out_row} * s.q_cols() + column, s.q_cols(),
                        run.position, run.tokens, 1, s.window, 1.0f / std::sqrt(float(s.head_dim)),
                        aligned});
    }
  }
}

device_error attend_on(const target& t, const step& s, const laid_out& at, const device_kv& kv,
                       const token_run* runs, const float* q, float* out) {
  uint32_t tiles = 0;
  for (const token_run& run : at.runs) {
    tiles = std::max(tiles, attention_tiles(run.position, s.window));
  }
  auto count = uint32_t(at.runs.size());
  std::vector<float> nothing(decode_scratch_floats(count, s.query_heads(), tiles), NAN);
  room<float> scratch(t, s.tokens_max() == 1 ? nothing : std::vector<float>{});
  device_attention a{.kv = kv,
                     .runs = runs,
                     .run_count = count,
                     .tokens_max = s.tokens_max(),
                     .q = q,
                     .q_stride = s.q_cols(),
                     .out = out,
                     .out_stride = s.q_cols(),
                     .heads = s.query_heads(),
                     .kv_heads = s.kv_heads,
                     .first_head = s.first_head,
                     .group = s.group,
                     .window = s.window,
                     .scale = 1.0f / std::sqrt(float(s.head_dim)),
                     .tiles_max = tiles,
                     .scratch = scratch.data()};
  return t.row->attend(a, t.stream);
}

std::string say(const step& s, const std::string& what, device_error error) {
  return what + ", error " + std::to_string(error) + ": head " + std::to_string(s.head_dim) +
         ", kv heads " + std::to_string(s.kv_heads) + ", group " + std::to_string(s.group) +
         ", window " + std::to_string(s.window) + ", pages of " + std::to_string(s.page_tokens) +
         ", type " + std::to_string(int(s.type)) + ", first request " +
         std::to_string(s.requests[0].before) + " + " + std::to_string(s.requests[0].tokens);
}

/// A pool of the reference's as a device has it.
std::vector<std::byte> with_key_rows(const step& s, const laid_out& at,
                                     std::vector<std::byte> pool) {
  device_kv kv = kv_of(s, at, pool.data(), nullptr);
  for (uint32_t i = 0; i < at.page_count * s.kv_heads; i++) {
    std::byte* page = kv.pool + i / s.kv_heads * kv.page_bytes;
    make_key_rows(s.type, s.head_dim, s.page_tokens,
                  page + kv.key_offset + i % s.kv_heads * kv.head_bytes);
  }
  return pool;
}

/// Stores all tokens on the target and in `pool`, by the reference; whether both are the same.
bool store(const target& t, const step& s, const laid_out& at, const numbers& in,
           room<std::byte>& device_pool, std::vector<std::byte>& pool) {
  room<uint32_t> pages(t, at.pages);
  room<token_run> runs(t, at.stored);
  room<float> k(t, in.k), v(t, in.v);
  device_error error = t.row->kv_store(kv_of(s, at, device_pool.data(), pages.data()), runs.data(),
                                       uint32_t(at.stored.size()), run_tokens, s.kv_heads, k.data(),
                                       v.data(), s.kv_cols(), t.stream);
  store_by_reference(s, at, in, kv_of(s, at, pool.data(), at.pages.data()));
  return error == 0 && same_bits_of(device_pool.read(), with_key_rows(s, at, pool));
}

/// Stores all tokens and attends with the step's; bytes of the pool and outputs are compared.
std::string run(const target& t, const step& s) {
  laid_out at(s);
  numbers in(s, at);
  std::vector<std::byte> pool(at.page_count * at.page_bytes, std::byte{0xff});
  room<std::byte> device_pool(t, pool);
  if (!store(t, s, at, in, device_pool, pool)) return say(s, "stored rows differ", 0);

  free_unseen(s, at, at.pages);
  room<uint32_t> pages(t, at.pages);
  room<token_run> runs(t, at.runs);
  room<float> q(t, in.q);
  std::vector<float> want(size_t{at.rows + 2} * s.q_cols(), 99.0f);
  room<float> out(t, want);
  device_error error = attend_on(t, s, at, kv_of(s, at, device_pool.data(), pages.data()),
                                 runs.data(), q.data(), out.data());
  attend_by_reference(s, at, in, kv_of(s, at, pool.data(), at.pages.data()), want);
  if (error || !same_bits_of(out.read(), want)) return say(s, "attended rows differ", error);
  return "";
}

/// A page that lies more than four gigabytes into its pool, of which only that page is touched.
std::string far_page(const target& t) {
  step s{.requests = {{20, 1}}, .head_dim = 32, .page_tokens = 32, .type = kv_type::bf16};
  laid_out near(s), far = near;
  numbers in(s, near);
  std::vector<std::byte> pool(near.page_count * near.page_bytes, std::byte{0xff});
  far.page_bytes = size_t{3} << 29;
  far.pages = {3};
  size_t before = 3 * far.page_bytes;
  auto* memory = static_cast<std::byte*>(t.take(before + near.page_bytes));
  t.copy_in(memory + before, pool.data(), near.page_bytes);
  room<uint32_t> pages(t, far.pages);
  room<token_run> stored(t, near.stored), runs(t, near.runs);
  room<float> k(t, in.k), v(t, in.v), q(t, in.q);
  std::vector<float> want(size_t{near.rows + 2} * s.q_cols(), 99.0f);
  room<float> out(t, want);
  device_kv kv = kv_of(s, far, memory, pages.data());
  device_error error = t.row->kv_store(kv, stored.data(), 1, run_tokens, 1, k.data(), v.data(),
                                       s.kv_cols(), t.stream);
  if (error == 0) error = attend_on(t, s, far, kv, runs.data(), q.data(), out.data());
  std::vector<std::byte> page(near.page_bytes);
  t.copy_out(page.data(), memory + before, page.size());
  t.give(memory, before + near.page_bytes);

  device_kv on_host = kv_of(s, near, pool.data(), near.pages.data());
  store_by_reference(s, near, in, on_host);
  attend_by_reference(s, near, in, on_host, want);
  pool = with_key_rows(s, near, pool);
  bool same_page = std::equal(page.begin(), page.end(), pool.end() - ptrdiff_t(page.size()));
  bool same = error == 0 && same_page && same_bits_of(out.read(), want);
  return same ? "" : say(s, "a far page differs", error);
}

/// Rows of ties, of zeros, too small to scale, and not finite.
std::string odd_rows(const target& t, kv_type type) {
  const float rows[][5] = {{1.0f + 0x1p-8f, 1.0f + 0x1.8p-7f, -1.0f - 0x1p-8f, 127.5f, -0.5f},
                           {127.0f, 0.5f, 1.5f, -2.5f, -0.0f},
                           {0.0f, 0.0f, -0.0f, 0.0f, 0.0f},
                           {1e-40f, -1e-40f, 0.0f, 1e-38f, -1e-38f},
                           {1e-45f, 0.0f, 1e-45f, -1e-45f, 0.0f},
                           {1.0f, INFINITY, -INFINITY, NAN, 3e38f},
                           {NAN, 1.0f, -2.0f, NAN, 0.25f}};
  step s{
      .requests = {{0, uint32_t(std::size(rows))}}, .head_dim = 5, .page_tokens = 3, .type = type};
  laid_out at(s);
  numbers in(s, at);
  std::memcpy(in.k.data(), rows, sizeof rows);
  std::reverse_copy(in.k.begin(), in.k.end(), in.v.begin());
  std::vector<std::byte> pool(at.page_count * at.page_bytes, std::byte{0xff});
  room<std::byte> device_pool(t, pool);
  return store(t, s, at, in, device_pool, pool) ? "" : say(s, "stored odd rows differ", 0);
}

std::string first_said(const target& t, const std::vector<step>& steps) {
  for (const step& s : steps) {
    if (std::string said = run(t, s); !said.empty()) return said;
  }
  return "";
}

const std::vector<request> decodes = {{0, 1}, {6, 1}, {62, 1}, {9, 0}, {63, 1}, {64, 1}, {130, 1}};
const std::vector<request> prompts = {{0, 32}, {70, 7}, {9, 0}, {31, 1}, {120, 19}};

std::string heads(const target& t, kv_type type, const std::vector<request>& requests) {
  std::vector<step> steps;
  for (uint32_t head_dim : {1u, 7u, 64u, 100u, 160u}) {
    steps.push_back({.requests = requests, .head_dim = head_dim, .group = 2, .type = type});
  }
  for (uint32_t group : {3u, 9u}) {
    steps.push_back(
        {.requests = requests, .head_dim = 24, .kv_heads = 2, .group = group, .type = type});
  }
  // A rank whose query heads begin and end within a kv head's.
  steps.push_back({.requests = requests,
                   .head_dim = 20,
                   .kv_heads = 3,
                   .group = 4,
                   .heads = 7,
                   .first_head = 3,
                   .type = type});
  return first_said(t, steps);
}

std::string windows(const target& t, kv_type type, const std::vector<request>& requests) {
  std::vector<step> steps;
  for (uint32_t window : {1u, 5u, 64u, 100u}) {
    steps.push_back(
        {.requests = requests, .head_dim = 32, .group = 3, .window = window, .type = type});
  }
  for (uint32_t page_tokens : {1u, 3u, 61u, 64u}) {
    steps.push_back({.requests = requests,
                     .head_dim = 17,
                     .kv_heads = 2,
                     .window = 90,
                     .page_tokens = page_tokens,
                     .type = type});
  }
  return first_said(t, steps);
}

/// More tiles than a block of decode_values weighs at once.
std::string long_context(const target& t, kv_type type) {
  std::vector<step> steps;
  for (uint32_t window : {0u, 580u}) {
    steps.push_back(
        {.requests = {{600, 1}, {3, 1}}, .head_dim = 40, .window = window, .type = type});
  }
  return first_said(t, steps);
}

}  // namespace

std::vector<check> attention_checks() {
  std::vector<check> all = {{"far_page", far_page}};
  constexpr std::pair<kv_type, const char*> types[] = {
      {kv_type::f32, "f32"}, {kv_type::bf16, "bf16"}, {kv_type::int8, "int8"}};
  for (auto [type, name] : types) {
    kv_type k = type;
    std::string of = name;
    all.push_back({"kv_store_odd_rows_" + of, [k](const target& t) { return odd_rows(t, k); }});
    all.push_back({"decode_heads_" + of, [k](const target& t) { return heads(t, k, decodes); }});
    all.push_back(
        {"decode_windows_" + of, [k](const target& t) { return windows(t, k, decodes); }});
    all.push_back({"decode_long_" + of, [k](const target& t) { return long_context(t, k); }});
    all.push_back({"prefill_heads_" + of, [k](const target& t) { return heads(t, k, prompts); }});
    all.push_back(
        {"prefill_windows_" + of, [k](const target& t) { return windows(t, k, prompts); }});
  }
  return all;
}

}  // namespace lethe

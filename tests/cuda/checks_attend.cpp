#include "tests/cuda/attention_step.hpp"

namespace lethe {

namespace {

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

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
  device_error error =
      t.row->place_heads(only_stored(kv, stored.data(), 1, 1, k.data(), v.data()), t.stream);
  if (error == 0) error = attend_on(t, s, far, kv, runs.data(), q.data(), out.data());
  std::vector<std::byte> page(near.page_bytes);
  t.copy_out(page.data(), memory + before, page.size());
  t.give(memory, before + near.page_bytes);

  device_kv on_host = kv_of(s, near, pool.data(), near.pages.data());
  store_by_reference(s, near, in, on_host);
  attend_by_reference(s, near, in, on_host, want);
  pool = as_rows(s, near, pool);
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

/// Rows of a step normed, turned and stored, over runs of several lengths and one of none.
std::string placed_heads(const target& t, kv_type type) {
  struct shape {
    uint32_t head_dim, rotary, heads, kv_heads;
    bool q_normed, k_normed;
  };
  for (shape c : {shape{64, 64, 4, 2, false, false},
                  {80, 32, 3, 1, true, true},
                  {7, 2, 1, 1, true, false},
                  {18, 18, 2, 2, false, true},
                  {128, 100, 1, 2, true, true},
                  {9, 0, 2, 1, true, true},
                  {160, 160, 2, 1, true, true},
                  {33, 33, 1, 3, false, false},
                  {24, 24, 0, 1, true, true}}) {
    step s{.requests = {{0, 5}, {6, 1}, {9, 0}, {30, 2}},
           .head_dim = c.head_dim,
           .kv_heads = c.kv_heads,
           .group = 1,
           .page_tokens = 3,
           .type = type};
    laid_out at(s);
    const size_t q_stride = c.heads * c.head_dim + 3, kv_stride = c.kv_heads * c.head_dim + 2;
    const uint32_t half = c.rotary / 2;
    std::vector<float> q = normal_floats(at.rows * q_stride, 1, 2.0f);
    std::vector<float> k = normal_floats(at.rows * kv_stride, 2, 2.0f);
    std::vector<float> v = normal_floats(at.rows * kv_stride, 3, 2.0f);
    std::vector<float> gain = normal_floats(c.head_dim, 4), cosines, sines;
    for (float a : normal_floats(at.rows * half, 5, 3.0f))
      cosines.push_back(std::cos(a)), sines.push_back(std::sin(a));
    std::vector<std::byte> pool(at.page_count * at.page_bytes, std::byte{0xff});

    room<std::byte> device_pool(t, pool);
    room<uint32_t> pages(t, at.pages);
    room<token_run> runs(t, at.runs);
    room<float> device_q(t, q), device_k(t, k), device_v(t, v), device_gain(t, gain);
    room<float> device_cosines(t, cosines), device_sines(t, sines);
    device_heads h{.kv = kv_of(s, at, device_pool.data(), pages.data()),
                   .runs = runs.data(),
                   .run_count = uint32_t(at.runs.size()),
                   .tokens_max = s.tokens_max(),
                   .q = device_q.data(),
                   .q_stride = q_stride,
                   .k = device_k.data(),
                   .v = device_v.data(),
                   .kv_stride = kv_stride,
                   .heads = c.heads,
                   .kv_heads = c.kv_heads,
                   .q_gain = c.q_normed ? device_gain.data() : nullptr,
                   .k_gain = c.k_normed ? device_gain.data() : nullptr,
                   .eps = 1e-5f,
                   .rotary = c.rotary,
                   .cosines = device_cosines.data(),
                   .sines = device_sines.data()};
    device_error error = t.row->place_heads(h, t.stream);

    std::vector<float> keys = k;
    struct side {
      std::vector<float>& rows;
      size_t stride;
      uint32_t heads;
      bool normed;
    };
    for (side of :
         {side{q, q_stride, c.heads, c.q_normed}, side{keys, kv_stride, c.kv_heads, c.k_normed}}) {
      for (uint32_t i = 0; of.normed && i < at.rows * of.heads; i++) {
        float* row = &of.rows[i / of.heads * of.stride + i % of.heads * c.head_dim];
        reference.rms_norm(row, c.head_dim, gain.data(), row, c.head_dim, 1, c.head_dim, 1e-5f);
      }
      reference.rope(of.rows.data(), of.stride, at.rows, of.heads, c.head_dim, c.rotary,
                     cosines.data(), sines.data());
    }
    device_kv kv = kv_of(s, at, pool.data(), at.pages.data());
    for (const token_run& run : at.runs)
      for (uint32_t head = 0; head < c.kv_heads; head++) {
        size_t from = run.row * kv_stride + head * c.head_dim;
        reference.kv_store(view_of(kv, head, run.first_page), run.position, run.tokens,
                           keys.data() + from, v.data() + from, kv_stride);
      }
    if (error != 0 || !same_bits_of(device_q.read(), q)) return say(s, "queries differ", error);
    if (!same_bits_of(device_k.read(), k)) return say(s, "keys were written to", error);
    if (!same_bits_of(device_pool.read(), as_rows(s, at, pool)))
      return say(s, "stored rows differ", error);
  }
  return "";
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

/// More tiles than a block weighs at once, and several spans, of head dimensions of one block of
/// columns and of two.
std::string long_context(const target& t, kv_type type, const std::vector<request>& requests) {
  std::vector<step> steps;
  for (uint32_t window : {0u, 580u, 1100u}) {
    steps.push_back({.requests = requests, .head_dim = 40, .window = window, .type = type});
  }
  steps.push_back({.requests = {requests[0]}, .head_dim = 136, .group = 2, .type = type});
  steps.push_back({.requests = requests, .head_dim = 40, .type = type, .rises = true});
  return first_said(t, steps);
}
const std::vector<request> long_decodes = {{2100, 1}, {600, 1}, {1023, 1}, {1024, 1}, {3, 1}};
const std::vector<request> long_prompts = {{2030, 40}, {1000, 30}, {3, 9}};

}  // namespace

std::vector<check> attention_checks() {
  std::vector<check> all = {{"far_page", far_page}};
  constexpr std::pair<kv_type, const char*> types[] = {
      {kv_type::f32, "f32"}, {kv_type::bf16, "bf16"}, {kv_type::int8, "int8"}};
  for (auto [type, name] : types) {
    kv_type k = type;
    std::string of = name;
    all.push_back({"place_heads_" + of, [k](const target& t) { return placed_heads(t, k); }});
    all.push_back({"place_heads_odd_rows_" + of, [k](const target& t) { return odd_rows(t, k); }});
    all.push_back({"decode_heads_" + of, [k](const target& t) { return heads(t, k, decodes); }});
    all.push_back(
        {"decode_windows_" + of, [k](const target& t) { return windows(t, k, decodes); }});
    all.push_back(
        {"decode_long_" + of, [k](const target& t) { return long_context(t, k, long_decodes); }});
    all.push_back({"prefill_heads_" + of, [k](const target& t) { return heads(t, k, prompts); }});
    all.push_back(
        {"prefill_windows_" + of, [k](const target& t) { return windows(t, k, prompts); }});
    all.push_back(
        {"prefill_long_" + of, [k](const target& t) { return long_context(t, k, long_prompts); }});
  }
  return all;
}

}  // namespace lethe

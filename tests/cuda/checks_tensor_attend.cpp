#include "tests/cuda/attention_step.hpp"

// Attention by tensor cores: near the reference by what rounding costs, and of one token the same
// bits, however it came to be computed.

namespace lethe {

namespace {

float as_bf16(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
  std::memcpy(&x, &bits, 4);
  return x;
}

/// Rows of outputs, `outs` those of the reference.
struct attended {
  bool good = false;
  std::vector<float> got, want;

  attended(const target& t, const step& s, const laid_out& at, const numbers& in) {
    std::vector<std::byte> pool(at.page_count * at.page_bytes, std::byte{0xff});
    store_by_reference(s, at, in, kv_of(s, at, pool.data(), at.pages.data()));
    room<std::byte> device_pool(t, as_rows(s, at, pool));
    std::vector<uint32_t> left = at.pages;
    free_unseen(s, at, left);
    room<uint32_t> pages(t, left);
    room<token_run> runs(t, at.runs);
    room<float> q(t, in.q);
    want.assign(size_t{at.rows + 2} * s.q_cols(), 99.0f);
    room<float> out(t, want);
    good = attend_on(t, s, at, kv_of(s, at, device_pool.data(), pages.data()), runs.data(),
                     q.data(), out.data()) == 0;
    got = out.read();
    attend_by_reference(s, at, in, kv_of(s, at, pool.data(), at.pages.data()), want);
  }
};

double most_of(const std::vector<float>& numbers) {
  double most = 0;
  for (float x : numbers) most = std::max(most, double(std::abs(x)));
  return most;
}

/// Where bfloat16 has the queries, keys and values, only weights are rounded, by 2^-8 of them. Else
/// each factor of a score is off by 2^-8 too, and so a score by up to 2^-7 of its products' sizes,
/// d; weights by a factor of e^2d; and values by 2^-8. int8's keys and values are what the cache
/// has; for them the reference rounds queries, each number by up to 1/254 of the greatest.
double bound_of(const step& s, const numbers& in, bool has_them) {
  auto longest = [&](const std::vector<float>& rows) {
    double most = 0;
    for (size_t i = 0; i < rows.size(); i += s.head_dim) {
      double size = 0;
      for (size_t d = 0; d < s.head_dim; d++) size += double(rows[i + d]) * rows[i + d];
      most = std::max(most, std::sqrt(size));
    }
    return most;
  };
  double q = longest(in.q), k = longest(in.k), v = most_of(in.v);
  double d = has_them ? 0 : q * k / std::sqrt(double(s.head_dim)) * 0x1p-7;
  if (s.type == kv_type::int8) d += most_of(in.q) / 254 * k;
  return v * (std::expm1(2 * d) + (has_them ? 0x1p-8 : 0x1p-7) + 1e-4);
}

/// `has_them`: bfloat16 the queries, keys and values.
std::string near(const target& t, const step& s, bool has_them) {
  laid_out at(s);
  numbers in(s, at);
  for (auto* rows : {&in.q, &in.k, &in.v})
    if (has_them && (rows == &in.q || s.type != kv_type::int8))
      for (float& x : *rows) x = as_bf16(x);
  attended a(t, s, at, in);
  if (!a.good) return say(s, "not attended", 0);
  double bound = bound_of(s, in, has_them);
  for (size_t i = 0; i < a.got.size(); i++)
    if (!(std::abs(double(a.got[i]) - a.want[i]) <= bound))
      return say(s,
                 "too far from the reference: " + std::to_string(a.got[i]) + " for " +
                     std::to_string(a.want[i]),
                 0);
  return "";
}

const std::vector<request> decodes = {{0, 1}, {6, 1}, {62, 1}, {9, 0}, {63, 1}, {64, 1}, {130, 1}};
const std::vector<request> prompts = {{0, 19}, {70, 7}, {9, 0}, {31, 1}, {120, 19}};

std::string shapes(const target& t, kv_type type) {
  std::vector<step> steps = {{.requests = decodes, .head_dim = 7, .group = 2},
                             {.requests = prompts, .head_dim = 64, .group = 2},
                             {.requests = prompts, .head_dim = 128, .group = 2, .aligned = true},
                             {.requests = decodes, .head_dim = 100, .group = 2},
                             {.requests = {{40, 3}}, .head_dim = 160},
                             {.requests = prompts, .head_dim = 32, .group = 3, .window = 5}};
  if (type == kv_type::f32) {
    steps.push_back({.requests = decodes, .head_dim = 256});
    steps.push_back({.requests = decodes, .head_dim = 24, .kv_heads = 2, .group = 20});
    steps.push_back({.requests = decodes, .head_dim = 32, .group = 3, .window = 100});
    // A rank whose query heads begin and end within a kv head's.
    for (const auto& requests : {decodes, prompts})
      steps.push_back({.requests = requests,
                       .head_dim = 20,
                       .kv_heads = 3,
                       .group = 4,
                       .heads = 7,
                       .first_head = 3});
  }
  for (step& s : steps) {
    s.type = type;
    bool last = &s == &steps.back();
    if (std::string said = near(t, s, !last); !said.empty()) return said;
  }
  return near(t, steps[0], false);
}

/// One request, all of whose queries, keys and values are known: what it is told apart by.
struct story {
  const target& t;
  step s;  // of all its heads; of its requests the first
  numbers in;
  std::vector<float> whole;
  uint32_t whole_from;  // the token that is its first row

  story(const target& on, step all, uint32_t from)
      : t(on), s(all), in(s, laid_out(everything())), whole_from(from) {
    whole = rows({from, length() - from}, s, {});
  }
  uint32_t length() const { return s.requests[0].before + s.requests[0].tokens; }
  step everything() const {
    step all = s;
    all.requests = {{0, length()}};
    return all;
  }

  /// Outputs of some of its tokens, computed as a step of `how` and beside others.
  std::vector<float> rows(request part, step how, std::vector<request> others) const {
    how.requests = others;
    how.requests.push_back(part);
    laid_out at(how);
    numbers mixed(how, at);
    const token_run& run = at.runs.back();
    size_t q_cols = how.q_cols(), skipped = size_t{how.first_head} * how.head_dim;
    for (uint32_t i = 0; i < part.tokens; i++)
      std::copy_n(&in.q[(part.before + i) * s.q_cols() + skipped], q_cols,
                  &mixed.q[(run.row + i) * q_cols]);
    size_t kept = size_t{part.before + part.tokens} * s.kv_cols();
    std::copy_n(in.k.begin(), kept, mixed.k.end() - ptrdiff_t(kept));
    std::copy_n(in.v.begin(), kept, mixed.v.end() - ptrdiff_t(kept));
    attended a(t, how, at, mixed);
    if (!a.good) return {};
    auto first = a.got.begin() + ptrdiff_t(run.out_row * q_cols);
    return {first, first + ptrdiff_t(part.tokens * q_cols)};
  }

  bool same(request part, const step& how, std::vector<request> others) const {
    std::vector<float> got = rows(part, how, std::move(others));
    size_t q_cols = how.q_cols(), skipped = size_t{how.first_head} * how.head_dim;
    if (got.size() != part.tokens * q_cols) return false;
    for (uint32_t i = 0; i < part.tokens; i++)
      if (std::memcmp(&got[i * q_cols],
                      &whole[(part.before + i - whole_from) * s.q_cols() + skipped],
                      q_cols * sizeof(float)) != 0)
        return false;
    return true;
  }
};

std::string same_however_it_came(const target& t, kv_type type) {
  const step kinds[] = {{.head_dim = 24, .group = 2},
                        {.head_dim = 24, .group = 2, .window = 70},
                        {.head_dim = 64, .group = 3, .aligned = true},
                        {.head_dim = 72, .window = 70, .aligned = true},
                        {.head_dim = 160, .window = 70}};
  for (step s : kinds) {
    uint32_t from = s.window == 0 ? 0 : 100;
    s.requests = {{0, 135}}, s.type = type;
    story of(t, s, from);
    for (uint32_t position : {0u, 1u, 63u, 64u, 127u, 128u, 134u})
      if (position >= from && !of.same({position, 1}, s, {{5, 1}}))
        return say(s, "a decode at " + std::to_string(position) + " has other bits", 0);
    for (request chunk : {request{0, 37}, {37, 40}, {127, 3}, {134, 1}})
      if (chunk.before >= from && !of.same(chunk, s, {{3, 9}, {0, 0}}))
        return say(s, "a chunk from " + std::to_string(chunk.before) + " has other bits", 0);
    for (uint32_t page_tokens : {1u, 61u}) {
      step how = s;
      how.page_tokens = page_tokens;
      if (!of.same({134, 1}, how, {}) || !of.same({130, 4}, how, {}))
        return say(how, "pages change bits", 0);
    }
  }
  step s{.requests = {{0, 75}}, .head_dim = 24, .kv_heads = 2, .group = 2, .type = type};
  story of(t, s, 65);
  s.first_head = 1, s.heads = 3;
  bool same = of.same({74, 1}, s, {}) && of.same({66, 5}, s, {});
  return same ? "" : say(s, "a rank's heads have other bits", 0);
}

/// Contexts of more than a span, whose joins a decode does apart.
std::string same_over_spans(const target& t, kv_type type) {
  // The last: its spans' tables reach the same words.
  constexpr std::pair<uint32_t, uint32_t> kinds[] = {
      {0, 1080}, {60, 1080}, {1030, 1080}, {0, 2010}};
  for (auto [window, from] : kinds) {
    step s{.requests = {{from, 16}}, .head_dim = 16, .window = window, .type = type};
    story of(t, s, from);
    for (uint32_t position : {from, from + 3, from + 15})
      if (!of.same({position, 1}, s, {{2, 1}}))
        return say(s, "a decode at " + std::to_string(position) + " has other bits", 0);
    if (!of.same({from + 1, 5}, s, {})) return say(s, "a chunk has other bits", 0);
    if (window == 0 && from == 1080)
      if (std::string said = near(t, s, true); !said.empty()) return said;
  }
  return "";
}

/// The control: a hundred keys elsewhere, as if they were counted from the first that is seen, have
/// other bits.
std::string elsewhere_differs(const target& t, kv_type type) {
  step s{.requests = {{99, 1}}, .head_dim = 32, .window = 100, .type = type};
  step later = s;
  later.requests = {{130, 1}};
  laid_out at(s), at_later(later);
  numbers in(s, at), moved(later, at_later);
  moved.q = in.q;
  std::copy(in.k.begin(), in.k.end(), moved.k.begin() + 31 * 32);
  std::copy(in.v.begin(), in.v.end(), moved.v.begin() + 31 * 32);
  attended first(t, s, at, in), second(t, later, at_later, moved);
  bool differ = first.good && second.good && first.got != second.got;
  return differ ? "" : "an order by the first key that is seen would not be told from ours";
}

/// Larger heads are attended to exactly.
std::string large_heads(const target& t) {
  step s{.requests = {{70, 1}}, .head_dim = 272};
  laid_out at(s);
  attended a(t, s, at, numbers(s, at));
  return a.good && same_bits_of(a.got, a.want) ? "" : say(s, "large heads are not exact", 0);
}

}  // namespace

std::vector<check> tensor_attention_checks() {
  std::vector<check> all = {{"tensor_attend_large_heads", large_heads}};
  constexpr check_of<kv_type> kinds[] = {{"near", shapes},
                                         {"however", same_however_it_came},
                                         {"spans", same_over_spans},
                                         {"elsewhere", elsewhere_differs}};
  constexpr std::pair<kv_type, const char*> types[] = {
      {kv_type::f32, "f32"}, {kv_type::bf16, "bf16"}, {kv_type::int8, "int8"}};
  for (auto [type, name] : types) add_checks(all, "tensor_attend_", type, name, kinds);
  return all;
}

}  // namespace lethe

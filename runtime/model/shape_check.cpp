#include "runtime/model/shape_check.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "runtime/base/limits.hpp"

namespace lethe {

namespace {

struct bounded {
  const char* name;
  uint32_t value, most;
};

void check_sizes(const model_shape& s, std::string_view where, problem_list& problems) {
  const bounded all[] = {{"layers", s.layers, limits::layers_max},
                         {"hidden size", s.hidden, limits::hidden_max},
                         {"attention heads", s.heads, limits::heads_max},
                         {"key/value heads", s.kv_heads, limits::heads_max},
                         {"head size", s.head_dim, limits::hidden_max},
                         {"feed-forward size", s.ffn, limits::hidden_max * 8},
                         {"vocabulary", s.vocab, limits::vocab_max},
                         {"context", s.context_max, limits::context_max}};
  for (const auto& b : all)
    if (b.value == 0 || b.value > b.most)
      note(problems, "{}: {} is {}; allowed: 1 to {}", where, b.name, b.value, b.most);
}

void check_heads(const model_shape& s, std::string_view where, problem_list& problems) {
  if (s.kv_heads && s.heads % s.kv_heads)
    note(problems, "{}: {} attention heads cannot share {} key/value heads evenly", where, s.heads,
         s.kv_heads);
  if (s.head_dim % 2)
    note(problems, "{}: head size {} is odd; rotary embedding turns pairs", where, s.head_dim);
  if (uint64_t{s.heads} * s.head_dim > limits::hidden_max * 8)
    note(problems, "{}: {} heads of {} are beyond the limit of {} columns", where, s.heads,
         s.head_dim, limits::hidden_max * 8);
  const auto& rotary = s.rope.rotary;
  if (rotary == 0 || rotary % 2 || rotary > s.head_dim)
    note(problems,
         "{}: {} of {} dimensions of a head turn; it must be even, and 2 to the head size", where,
         rotary, s.head_dim);
}

bool positive(double x) { return std::isfinite(x) && x > 0; }

void check_rope(const model_shape& s, std::string_view where, problem_list& problems) {
  const rope_shape& r = s.rope;
  if (!positive(r.theta) || r.theta <= 1)
    note(problems, "{}: rope theta is {}; it must be above 1", where, r.theta);
  if (r.scaling != rope_scaling::none && (!positive(r.factor) || r.factor < 1))
    note(problems, "{}: rope scaling factor is {}; it must be 1 or more", where, r.factor);
  bool needs_original = r.scaling == rope_scaling::llama3 || r.scaling == rope_scaling::yarn;
  if (needs_original && (r.original_context == 0 || r.original_context > limits::context_max))
    note(problems, "{}: rope scaling's original context is {}; allowed: 1 to {}", where,
         r.original_context, limits::context_max);
  if (r.scaling == rope_scaling::llama3 &&
      (!positive(r.low_freq_factor) || !positive(r.high_freq_factor) ||
       r.low_freq_factor >= r.high_freq_factor))
    note(problems, "{}: rope scaling's low_freq_factor {} must be below high_freq_factor {}", where,
         r.low_freq_factor, r.high_freq_factor);
  if (r.scaling == rope_scaling::yarn &&
      (!positive(r.beta_fast) || !positive(r.beta_slow) || r.beta_slow > r.beta_fast))
    note(problems, "{}: rope scaling's beta_slow {} must not be above beta_fast {}", where,
         r.beta_slow, r.beta_fast);
  if (!std::isfinite(r.attention_factor) || r.attention_factor < 0)
    note(problems, "{}: rope scaling's attention_factor is {}; it must be above 0", where,
         r.attention_factor);
}

/// Extreme numbers can each be allowed and still leave the range of a double together.
void check_frequencies(const model_shape& s, std::string_view where, problem_list& problems) {
  auto all = rope_frequencies(s.rope);
  bool finite = std::all_of(all.begin(), all.end(), [](double f) { return std::isfinite(f); });
  if (!finite || !std::isfinite(rope_magnitude(s.rope)))
    note(problems, "{}: the numbers of its rope scaling give no finite rotation", where);
}

/// rope_freqs divides frequencies: one positive number per pair.
void check_factors(const model_shape& s, std::string_view where, problem_list& problems) {
  const auto& factors = s.rope.factors;
  if (factors.empty()) return;
  if (factors.size() != s.rope.rotary / 2)
    note(problems, "{}: rope_freqs has {} numbers; {} pairs turn", where, factors.size(),
         s.rope.rotary / 2);
  for (float f : factors)
    if (!positive(f)) return note(problems, "{}: rope_freqs holds {}", where, f);
}

void add_attention(const model_shape& s, const std::string& layer,
                   std::vector<expected_tensor>& all) {
  uint32_t q = s.heads * s.head_dim, kv = s.kv_heads * s.head_dim;
  all.push_back({layer + "attn_norm", 1, s.hidden});
  all.push_back({layer + "q", q, s.hidden});
  all.push_back({layer + "k", kv, s.hidden});
  all.push_back({layer + "v", kv, s.hidden});
  all.push_back({layer + "o", s.hidden, q});
  if (s.qkv_bias) {
    all.push_back({layer + "q_bias", 1, q});
    all.push_back({layer + "k_bias", 1, kv});
    all.push_back({layer + "v_bias", 1, kv});
  }
  if (s.o_bias) all.push_back({layer + "o_bias", 1, s.hidden});
  if (s.qk_norm) {
    all.push_back({layer + "q_norm", 1, s.head_dim});
    all.push_back({layer + "k_norm", 1, s.head_dim});
  }
}

void add_mlp(const model_shape& s, const std::string& layer, std::vector<expected_tensor>& all) {
  all.push_back({layer + "ffn_norm", 1, s.hidden});
  all.push_back({layer + "gate", s.ffn, s.hidden});
  all.push_back({layer + "up", s.ffn, s.hidden});
  all.push_back({layer + "down", s.hidden, s.ffn});
  if (!s.mlp_bias) return;
  all.push_back({layer + "gate_bias", 1, s.ffn});
  all.push_back({layer + "up_bias", 1, s.ffn});
  all.push_back({layer + "down_bias", 1, s.hidden});
}

std::string dims(uint32_t rows, uint32_t cols) {
  return rows == 1 ? fmt::format("{}", cols) : fmt::format("{} x {}", rows, cols);
}

bool is_table(std::string_view name) { return name == "embed" || name == "head"; }

/// Empty: as it should be.
std::string fault_of(const raw_tensor& t, const expected_tensor& e) {
  if (t.rows != e.rows || t.cols != e.cols)
    return fmt::format("is {}; the model's numbers say {}", dims(t.rows, t.cols),
                       dims(e.rows, e.cols));
  if (e.rows == 1 && !is_table(e.name) && !is_float(t.type))
    return fmt::format("has type {}; vectors may have f32, f16, bf16", name_of(t.type));
  return {};
}

}  // namespace

void check_shape(const model_shape& shape, std::string_view where, problem_list& problems) {
  size_t before = problems.size();
  check_sizes(shape, where, problems);
  check_heads(shape, where, problems);
  check_rope(shape, where, problems);
  check_factors(shape, where, problems);
  if (problems.size() == before) check_frequencies(shape, where, problems);
  if (!std::isfinite(shape.norm_eps) || shape.norm_eps < 0 || shape.norm_eps > 1)
    note(problems, "{}: norm epsilon is {}; allowed: 0 to 1", where, shape.norm_eps);
}

std::vector<expected_tensor> expected_tensors(const model_shape& shape) {
  std::vector<expected_tensor> all;
  all.push_back({"embed", shape.vocab, shape.hidden});
  for (uint32_t i = 0; i < shape.layers; ++i) {
    auto layer = fmt::format("layers.{}.", i);
    add_attention(shape, layer, all);
    add_mlp(shape, layer, all);
  }
  all.push_back({"norm", 1, shape.hidden});
  if (!shape.tied) all.push_back({"head", shape.vocab, shape.hidden});
  return all;
}

void check_tensors(const model_shape& shape, std::span<const raw_tensor> tensors,
                   const tensor_place& place, tensor_faults& faults) {
  std::unordered_map<std::string_view, const raw_tensor*> found;
  for (const auto& t : tensors) found.emplace(t.name, &t);
  auto expected = expected_tensors(shape);
  for (const auto& e : expected) {
    auto name = place.in_file(e.name);
    auto at = found.find(e.name);
    if (at == found.end()) {
      if (!place.unread.contains(e.name)) faults.add(place.where, name, "is missing");
      continue;
    }
    if (auto fault = fault_of(*at->second, e); !fault.empty()) faults.add(place.where, name, fault);
    found.erase(at);
  }
  for (const auto& t : tensors)
    if (found.contains(t.name))
      faults.add(place.where, place.in_file(t.name),
                 fmt::format("is not part of a {} model with these numbers", shape.family));
}

}  // namespace lethe

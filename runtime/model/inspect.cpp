#include "runtime/model/inspect.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/cpu_row.hpp"
#include "runtime/model/checkpoint.hpp"
#include "runtime/model/problems.hpp"

namespace lethe {

namespace {

void count_tensors(const checkpoint& model, model_facts& facts) {
  std::array<type_share, dtype_count> shares{};
  for (const raw_tensor& t : model.tensors()) {
    uint64_t elements = uint64_t{t.rows} * t.cols;
    type_share& share = shares[uint8_t(t.type)];
    share.tensors += 1;
    share.parameters += elements;
    share.bytes += t.data.size();
    facts.parameters += elements;
    facts.file_bytes += t.data.size();
    // Vectors become f32, matrices panels of the file's own type.
    facts.weight_bytes += t.rows == 1 ? elements * 4 : matrix_bytes(t.type, t.rows, t.cols);
  }
  for (uint8_t i = 0; i < dtype_count; ++i) {
    shares[i].type = dtype(i);
    if (shares[i].tensors) facts.types.push_back(shares[i]);
  }
  std::stable_sort(facts.types.begin(), facts.types.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
}

void count_kv(model_facts& facts) {
  const model_shape& s = facts.shape;
  constexpr std::pair<const char*, kv_type> types[] = {
      {"f32", kv_type::f32}, {"bf16", kv_type::bf16}, {"int8", kv_type::int8}};
  for (size_t i = 0; i < facts.kv.size(); ++i) {
    uint64_t token =
        uint64_t{s.layers} * s.kv_heads * 2 * kv_row_bytes(types[i].second, s.head_dim);
    facts.kv[i] = {types[i].first, token, token * facts.context};
  }
}

std::string rope_in_words(const rope_shape& r, uint32_t head_dim) {
  std::string text = fmt::format("theta {:g}", r.theta);
  if (r.rotary != head_dim) text += fmt::format(", {} of {} dimensions", r.rotary, head_dim);
  switch (r.scaling) {
    case rope_scaling::none:
      break;
    case rope_scaling::linear:
      text += fmt::format(", linear x{:g}", r.factor);
      break;
    case rope_scaling::llama3:
      text += fmt::format(", llama3 x{:g} over {}", r.factor, r.original_context);
      break;
    case rope_scaling::yarn:
      text += fmt::format(", yarn x{:g} over {}", r.factor, r.original_context);
      break;
  }
  if (!r.factors.empty()) text += ", own factor per pair (llama3)";
  return text;
}

std::string window_in_words(const model_shape& s) {
  uint32_t window = 0;
  size_t count = 0;
  for (uint32_t w : s.window)
    if (w) window = w, ++count;
  if (count == 0) return "none: each token sees all before it";
  if (count == s.window.size()) return fmt::format("{} tokens", window);
  return fmt::format("{} tokens in {} of {} layers", window, count, s.window.size());
}

}  // namespace

result<model_facts> inspect_model(const std::filesystem::path& path, uint32_t context) {
  model_facts facts;
  auto model = checkpoint::examine(path, facts.problems);
  if (!model) return model.why();
  facts.gguf = model->is_gguf();
  facts.shape = model->shape();
  facts.defaults = model->defaults();
  facts.context = context ? context : facts.shape.context_max;
  count_tensors(*model, facts);
  count_kv(facts);
  facts.rope = rope_in_words(facts.shape.rope, facts.shape.head_dim);
  facts.window = window_in_words(facts.shape);
  return facts;
}

}  // namespace lethe

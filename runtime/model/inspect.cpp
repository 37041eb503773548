#include "runtime/model/inspect.hpp"

#include <algorithm>
#include <string_view>

#include "kernels/cpu_row.hpp"
#include "runtime/model/checkpoint.hpp"
#include "runtime/model/problems.hpp"

namespace lethe {

namespace {

struct part_name {
  std::string_view ending, part;
};

/// What tensors do, by how their names end, in the order in which it is shown.
constexpr part_name part_names[] = {{"embed", "embedding"},     {".q", "attention q"},
                                    {".k", "attention k"},      {".v", "attention v"},
                                    {".o", "attention o"},      {".gate", "feed-forward gate"},
                                    {".up", "feed-forward up"}, {".down", "feed-forward down"},
                                    {"norm", "norms"},          {"_bias", "biases"},
                                    {"head", "head"},           {"", "unknown"}};

size_t part_of(std::string_view name) {
  size_t i = 0;
  while (!name.ends_with(part_names[i].ending)) ++i;
  return i;
}

void add_to(std::vector<type_share>& shares, const type_share& one) {
  auto at = std::find_if(shares.begin(), shares.end(),
                         [&one](const auto& s) { return s.type == one.type; });
  if (at == shares.end()) at = shares.insert(shares.end(), {.type = one.type});
  at->tensors += one.tensors;
  at->parameters += one.parameters;
  at->bytes += one.bytes;
}

void count(model_facts& facts, std::string_view name, const type_share& one) {
  add_to(facts.parts[part_of(name)].types, one);
  add_to(facts.types, one);
  facts.parameters += one.parameters;
  facts.file_bytes += one.bytes;
}

/// The most important first; parts that nothing has leave.
void order(model_facts& facts) {
  std::erase_if(facts.parts, [](const auto& p) { return p.types.empty(); });
  for (auto& part : facts.parts)
    std::stable_sort(part.types.begin(), part.types.end(),
                     [](const auto& a, const auto& b) { return a.tensors > b.tensors; });
  std::stable_sort(facts.types.begin(), facts.types.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
}

void count_tensors(const checkpoint& model, model_facts& facts) {
  for (const auto& p : part_names) facts.parts.push_back({std::string(p.part), {}});
  for (const raw_tensor& t : model.tensors()) {
    uint64_t elements = uint64_t{t.rows} * t.cols;
    count(facts, t.name, {name_of(t.type), 1, elements, t.data.size()});
    // Vectors become f32, matrices panels of the file's own type.
    facts.weight_bytes += t.rows == 1 ? elements * 4 : matrix_bytes(t.type, t.rows, t.cols);
  }
  for (const unread_tensor& t : model.unread())
    count(facts, t.name, {t.type, 1, t.parameters, t.bytes});
  if (!model.unread().empty()) facts.weight_bytes = 0;
  order(facts);
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
  if (facts.shape.rope.rotary) facts.rope = rope_in_words(facts.shape.rope, facts.shape.head_dim);
  if (!facts.shape.window.empty()) facts.window = window_in_words(facts.shape);
  return facts;
}

}  // namespace lethe

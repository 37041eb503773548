#include "runtime/model/load_layout.hpp"

#include <fmt/format.h>

#include <unordered_map>

#include "runtime/base/check.hpp"

namespace lethe {
namespace {

constexpr uint64_t line_bytes = 64;
constexpr uint64_t model_bytes_max = uint64_t{1} << 46;  // below the address space of a process

bool names_vector(std::string_view name) {
  return name.ends_with("norm") || name.ends_with("_bias");
}

/// The two tables decide each token directly: they are not taken below eight bits.
dtype wanted_type(const raw_tensor& t, dtype quantize) {
  return t.name == "embed" || t.name == "head" ? dtype::q8_0 : quantize;
}

result<placed_tensor> placed_vector(const raw_tensor& t) {
  if (!is_float(t.type)) {
    return fail("tensor {}: a norm or bias of type {} is not supported; supported: f32, f16, bf16",
                t.name, name_of(t.type));
  }
  check(t.rows == 1);
  return placed_tensor{
      .name = t.name, .is_vector = true, .cols = t.cols, .bytes = uint64_t{t.cols} * sizeof(float)};
}

placed_tensor placed_matrix(const raw_tensor& t, dtype type) {
  return {.name = t.name,
          .type = type,
          .rows = t.rows,
          .cols = t.cols,
          .bytes = matrix_bytes(type, t.rows, t.cols)};
}

result<void> check_quantize(std::span<const raw_tensor> tensors, dtype quantize) {
  if (is_float(quantize)) {
    return fail("quant: {} is not a block type; take q8_0 or q4_0", name_of(quantize));
  }
  for (const raw_tensor& t : tensors) {
    if (is_float(t.type)) continue;
    return fail("quant: tensor {} is {} already; only float checkpoints are converted", t.name,
                name_of(t.type));
  }
  return {};
}

result<placed_tensor> placed(const raw_tensor& t, std::optional<dtype> quantize,
                             load_layout& layout) {
  if (names_vector(t.name)) return placed_vector(t);
  if (!quantize) return placed_matrix(t, t.type);
  dtype wanted = wanted_type(t, *quantize);
  if (t.cols % block_elements(wanted) == 0) return placed_matrix(t, wanted);
  layout.unconverted.push_back(t.name);
  return placed_matrix(t, t.type);
}

}  // namespace

result<load_layout> plan_layout(std::span<const raw_tensor> tensors,
                                std::optional<dtype> quantize) {
  if (quantize) {
    if (auto ok = check_quantize(tensors, *quantize); !ok) return ok.why();
  }
  load_layout layout;
  layout.tensors.reserve(tensors.size());
  for (const raw_tensor& t : tensors) {
    auto at = placed(t, quantize, layout);
    if (!at) return at.why();
    at->offset = layout.bytes;
    if (at->bytes > model_bytes_max - layout.bytes) {
      return fail("tensor {}: the weights need more than {} bytes", t.name, model_bytes_max);
    }
    layout.bytes += (at->bytes + line_bytes - 1) / line_bytes * line_bytes;
    layout.tensors.push_back(*std::move(at));
  }
  return layout;
}

namespace {

class views {
 public:
  views(const load_layout& layout, const std::byte* base) : base_(base) {
    for (const placed_tensor& t : layout.tensors) by_name_.emplace(t.name, &t);
  }

  matrix matrix_of(const std::string& name) const {
    const placed_tensor* t = find(name);
    check(t && !t->is_vector);
    return {.type = t->type, .rows = t->rows, .cols = t->cols, .panels = base_ + t->offset};
  }

  const float* optional(const std::string& name) const {
    const placed_tensor* t = find(name);
    if (!t) return nullptr;
    check(t->is_vector);
    return reinterpret_cast<const float*>(base_ + t->offset);
  }

  const float* vector_of(const std::string& name) const {
    const float* at = optional(name);
    check(at);
    return at;
  }

 private:
  const placed_tensor* find(const std::string& name) const {
    auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
  }

  const std::byte* base_;
  std::unordered_map<std::string_view, const placed_tensor*> by_name_;
};

attention_weights attention_at(const views& from, const std::string& layer) {
  return {.norm = from.vector_of(layer + "attn_norm"),
          .q = from.matrix_of(layer + "q"),
          .k = from.matrix_of(layer + "k"),
          .v = from.matrix_of(layer + "v"),
          .o = from.matrix_of(layer + "o"),
          .q_bias = from.optional(layer + "q_bias"),
          .k_bias = from.optional(layer + "k_bias"),
          .v_bias = from.optional(layer + "v_bias"),
          .o_bias = from.optional(layer + "o_bias"),
          .q_norm = from.optional(layer + "q_norm"),
          .k_norm = from.optional(layer + "k_norm")};
}

mlp_weights mlp_at(const views& from, const std::string& layer) {
  return {.norm = from.vector_of(layer + "ffn_norm"),
          .gate = from.matrix_of(layer + "gate"),
          .up = from.matrix_of(layer + "up"),
          .down = from.matrix_of(layer + "down"),
          .gate_bias = from.optional(layer + "gate_bias"),
          .up_bias = from.optional(layer + "up_bias"),
          .down_bias = from.optional(layer + "down_bias")};
}

}  // namespace

model_weights weights_at(const model_shape& shape, const load_layout& layout,
                         const std::byte* base) {
  views from(layout, base);
  model_weights weights{.shape = shape, .embed = from.matrix_of("embed")};
  for (uint32_t i = 0; i < shape.layers; ++i) {
    std::string layer = fmt::format("layers.{}.", i);
    weights.layers.push_back({.attention = attention_at(from, layer), .mlp = mlp_at(from, layer)});
  }
  weights.norm = from.vector_of("norm");
  weights.head = shape.tied ? weights.embed : from.matrix_of("head");
  return weights;
}

}  // namespace lethe

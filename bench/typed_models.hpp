#pragma once

// One model with its matrices in each type that its widths allow, written to a temporary folder as
// GGUF files and loaded from there. f32 holds the very numbers of the source.

#include <map>
#include <memory>

#include "runtime/base/temporary_folder.hpp"
#include "runtime/model/load.hpp"
#include "tests/e2e/quantized_model.hpp"

namespace lethe::accuracy {

inline bool fits(const checkpoint& from, dtype type) {
  return std::ranges::all_of(from.tensors(), [type](const raw_tensor& t) {
    return t.rows == 1 || t.cols % block_elements(type) == 0;
  });
}

/// Types of a model in the order of the enumeration, f32 first.
inline std::vector<dtype> types_of(const checkpoint& from) {
  std::vector<dtype> types;
  for (uint32_t i = 0; i < dtype_count; ++i)
    if (fits(from, dtype(i))) types.push_back(dtype(i));
  return types;
}

/// The same function with activations that have outliers: some channels of the norms' gains are
/// `times` as large, the columns that read them as much smaller.
inline e2e::row_edit planted_outliers(float times = 100) {
  return [times](std::string_view name, std::span<float> row) {
    auto ends = [name](std::initializer_list<std::string_view> with) {
      return std::ranges::any_of(with, [name](auto end) { return name.ends_with(end); });
    };
    bool gains = ends({".attn_norm", ".ffn_norm"});
    if (!gains && !ends({".q", ".k", ".v", ".gate", ".up"})) return;
    for (size_t channel : {3, 70, 133, 200})
      if (channel < row.size()) row[channel] *= gains ? times : 1 / times;
  };
}

/// Behind `edit`, matrices are what they are in `type`: kept as floats, that is what their weights
/// alone cost, however exactly they are multiplied.
inline e2e::row_edit rounded_to(dtype type, e2e::row_edit edit = {}) {
  return [type, edit = std::move(edit)](std::string_view name, std::span<float> row) {
    if (edit) edit(name, row);
    if (name.ends_with("norm") || name.ends_with("bias")) return;
    std::vector<std::byte> blocks(e2e::row_bytes(type, uint32_t(row.size())));
    quantize_row(type, row.data(), row.size(), blocks.data());
    dequantize_row(type, blocks.data(), row.data(), row.size());
  };
}

class typed_models {
 public:
  explicit typed_models(const checkpoint& from, e2e::row_edit edit = {})
      : from_(from), edit_(std::move(edit)), folder_(in_memory()) {}

  const model_weights& of(dtype type) {
    auto& place = loaded_[type];
    if (!place) place = load(type);
    return place->weights();
  }

 private:
  static temporary_folder in_memory() {
    auto made = temporary_folder::make_in_memory("lethe-accuracy");
    if (!made) throw std::runtime_error(made.why().text);
    return std::move(*made);
  }
  std::unique_ptr<loaded_model> load(dtype type) {
    auto path = folder_.path() / (std::string(name_of(type)) + ".gguf");
    e2e::write_mixed(
        from_, path, [type](std::string_view) { return type; }, edit_);
    auto file = checkpoint::open(path);
    if (!file) throw std::runtime_error(file.why().text);
    auto model = loaded_model::load(*file, {});
    if (!model) throw std::runtime_error(model.why().text);
    std::filesystem::remove(path);
    return std::move(*model);
  }

  const checkpoint& from_;
  e2e::row_edit edit_;
  temporary_folder folder_;
  std::map<dtype, std::unique_ptr<loaded_model>> loaded_;
};

}  // namespace lethe::accuracy

#pragma once

// A GGUF file whose matrices have any mix of types, and the same numbers for the oracle: each row
// as its blocks say it, by the plain definition of the format.

#include <fstream>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/model/checkpoint.hpp"
#include "runtime/model/convert_shape.hpp"
#include "runtime/model/gguf_write.hpp"
#include "runtime/model/quantize.hpp"
#include "runtime/model/tensor_names.hpp"
#include "tests/e2e/oracle.hpp"

namespace lethe::e2e {

/// The type of a matrix by checkpoint.hpp's name of it.
using type_rule = std::function<dtype(std::string_view name)>;

inline size_t row_bytes(dtype type, uint32_t cols) {
  return size_t{cols} / block_elements(type) * block_bytes(type);
}

/// Changes the numbers of one row of a tensor before they are written.
using row_edit = std::function<void(std::string_view name, std::span<float> row)>;

/// The rows of `t` in `type`, in the order of the model.
inline std::vector<std::byte> quantized(const raw_tensor& t, dtype type,
                                        const row_edit& edit = {}) {
  std::vector<float> row(t.cols);
  std::vector<std::byte> out(t.rows * row_bytes(type, t.cols));
  for (uint32_t r = 0; r < t.rows; ++r) {
    dequantize_row(t.type, t.data.data() + r * row_bytes(t.type, t.cols), row.data(), t.cols);
    if (edit) edit(t.name, row);
    quantize_row(type, row.data(), t.cols, out.data() + r * row_bytes(type, t.cols));
  }
  return out;
}

/// What the blocks say becomes the truth's matrix.
inline void teach(oracle::model& truth, const raw_tensor& t, dtype type,
                  const std::vector<std::byte>& rows) {
  std::string name = name_in_hf(t.name);
  if (name.starts_with("model.")) name.erase(0, 6);
  if (!is_float(type)) truth.eight_bit.insert(name);
  oracle::row& values = truth.tensors.at(name);
  std::vector<float> row(t.cols);
  for (uint32_t r = 0; r < t.rows; ++r) {
    dequantize_row(type, rows.data() + r * row_bytes(type, t.cols), row.data(), t.cols);
    std::copy(row.begin(), row.end(), values.begin() + size_t{r} * t.cols);
  }
}

/// Quantizes what `teach` and both ways of writing agree on.
inline void teach_all(oracle::model& truth, const checkpoint& from, const type_rule& type_of) {
  for (const auto& t : from.tensors())
    if (t.rows > 1) teach(truth, t, type_of(t.name), quantized(t, type_of(t.name)));
}

/// Llama files hold the rows of q and k as pairs that turn together.
inline std::vector<std::byte> as_pairs(const std::vector<std::byte>& rows, uint32_t count,
                                       uint32_t head_dim) {
  size_t size = rows.size() / count;
  std::vector<std::byte> out(rows.size());
  for (uint32_t r = 0; r < count; ++r)
    std::copy_n(rows.begin() + r * size, size, out.begin() + unpermuted_row(r, head_dim) * size);
  return out;
}

/// Without a vocabulary: it runs on ids.
inline void write_mixed(const checkpoint& from, const std::filesystem::path& to,
                        const type_rule& type_of, const row_edit& edit = {}) {
  const model_shape& shape = from.shape();
  gguf_header header;
  add_general(shape.family, "mixed", dtype::q4_k, header);
  add_shape(shape, shape.family, header);
  std::string data;
  for (const auto& t : from.tensors()) {
    dtype type = t.rows > 1 ? type_of(t.name) : dtype::f32;
    header.add_tensor(name_in_gguf(t.name), type, t.rows, t.cols);
    auto rows = quantized(t, type, edit);
    bool turns = t.name.ends_with(".q") || t.name.ends_with(".k");
    if (turns && shape.family == "llama") rows = as_pairs(rows, t.rows, shape.head_dim);
    data += as_text(rows);
    data.resize((data.size() + gguf_alignment - 1) / gguf_alignment * gguf_alignment);
  }
  std::ofstream(to, std::ios::binary) << header.bytes() << data;
}

}  // namespace lethe::e2e

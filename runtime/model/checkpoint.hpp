#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kernels/matrix.hpp"
#include "parallel/shape.hpp"
#include "runtime/base/bytes.hpp"
#include "runtime/base/result.hpp"
#include "runtime/model/dtype_name.hpp"
#include "runtime/model/generation_defaults.hpp"

namespace lethe {

class checkpoint_source;

/// A weight as it lies in the file, row-major. Names do not depend on the format: "embed", "head",
/// "norm", "layers.N." and attn_norm, q, k, v, o, q_bias, k_bias, v_bias, o_bias, q_norm, k_norm,
/// ffn_norm, gate, up, down, gate_bias, up_bias, down_bias.
struct raw_tensor {
  std::string name;
  dtype type = dtype::f32;
  uint32_t rows = 1, cols = 0;  // a vector has one row
  bytes_view data;
  /// Each head's rows come as pairs that turn together (GGUF files of the llama family): the
  /// model's row r is the file's row unpermuted_row(r, head_dim). A bias: its elements likewise.
  bool interleaved_rope = false;
};

/// A tensor of a file that cannot be a weight of ours; `lethe model inspect` counts it.
struct unread_tensor {
  std::string name;                    // as in raw_tensor; empty: unknown there
  std::string type;                    // the file's word
  uint64_t parameters = 0, bytes = 0;  // bytes: 0 where the type's size is not known
};

/// Where an interleaved file keeps the model's row `row`: within each head it holds the rows
/// 0, h/2, 1, h/2+1, ...
constexpr uint32_t unpermuted_row(uint32_t row, uint32_t head_dim) {
  uint32_t first = row - row % head_dim, r = row % head_dim, half = head_dim / 2;
  return first + (r < half ? 2 * r : 2 * (r - half) + 1);
}

/// A published model, opened: a Hugging Face folder or a GGUF file, its shape checked against its
/// tensors: none is missing, none is unknown, all have the shape that the numbers say.
class checkpoint {
 public:
  static result<checkpoint> open(const std::filesystem::path& path);
  /// Collects what `open` would refuse. Where `problems` grows, the result is for display only.
  static result<checkpoint> examine(const std::filesystem::path& path,
                                    std::vector<std::string>& problems);
  checkpoint(checkpoint&&) noexcept;
  checkpoint& operator=(checkpoint&&) noexcept;
  ~checkpoint();

  const model_shape& shape() const noexcept { return shape_; }
  const generation_defaults& defaults() const noexcept { return defaults_; }
  std::span<const raw_tensor> tensors() const noexcept { return tensors_; }
  /// Empty unless `examine` found problems.
  std::span<const unread_tensor> unread() const noexcept { return unread_; }
  const raw_tensor* find(std::string_view name) const;
  const std::filesystem::path& path() const noexcept { return path_; }
  bool is_gguf() const noexcept { return is_gguf_; }
  /// This tensor's pages will not be read again soon.
  void release(const raw_tensor& tensor) const noexcept;

 private:
  checkpoint();
  std::filesystem::path path_;
  bool is_gguf_ = false;
  model_shape shape_;
  generation_defaults defaults_;
  std::vector<raw_tensor> tensors_;
  std::vector<unread_tensor> unread_;
  std::unordered_map<std::string_view, uint32_t> index_;  // views the names in tensors_
  std::unique_ptr<checkpoint_source> source_;
};

}  // namespace lethe

#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/matrix.hpp"
#include "runtime/base/bytes.hpp"
#include "runtime/base/result.hpp"
#include "runtime/model/gguf_types.hpp"

namespace lethe {

/// Metadata and tensor list of a GGUF file (version 3), as it lies at the file's begin.
class gguf_header {
 public:
  void add(std::string_view key, uint32_t value);
  void add(std::string_view key, float value);
  void add(std::string_view key, bool value);
  void add(std::string_view key, std::string_view value);
  void add(std::string_view key, const char* value) { add(key, std::string_view(value)); }
  void add(std::string_view key, std::span<const std::string> values);
  void add(std::string_view key, std::span<const float> values);
  void add(std::string_view key, std::span<const int32_t> values);
  void add(std::string_view key, const std::vector<bool>& values);
  /// Tensors follow each other in this order. A vector has one row and is written with one
  /// dimension.
  void add_tensor(std::string_view name, dtype type, uint32_t rows, uint32_t cols);

  /// Everything before the data, padded to the alignment.
  std::string bytes() const;
  /// Of the data, with padding between tensors.
  uint64_t data_bytes() const noexcept { return data_bytes_; }

 private:
  template <class T>
  void add_number(std::string_view key, gguf_kind kind, T value);
  void begin(std::string_view key, gguf_kind kind);
  void begin_array(std::string_view key, gguf_kind element, uint64_t count);

  std::string keys_, tensors_;
  uint64_t key_count_ = 0, tensor_count_ = 0, data_bytes_ = 0;
};

inline constexpr uint64_t gguf_alignment = 32;

}  // namespace lethe

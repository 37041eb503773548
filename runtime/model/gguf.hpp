#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kernels/matrix.hpp"
#include "runtime/base/mapped_file.hpp"
#include "runtime/model/gguf_types.hpp"

namespace lethe {

/// A metadata value where it lies in the file: `bytes` begins at the value (a text's or array's
/// first element). Texts inside an array keep their 8-byte lengths.
struct gguf_value {
  gguf_kind kind = gguf_kind::u8;
  gguf_kind element = gguf_kind::u8;  // of an array
  uint64_t count = 0;                 // of an array
  bytes_view bytes;
};

struct gguf_tensor {
  std::string_view name;
  uint32_t type_number = 0;
  std::optional<dtype> type;  // none: a type that this program does not read
  uint32_t dims_count = 0;
  std::array<uint64_t, 4> dims{1, 1, 1, 1};  // dims[0] lies contiguous
  bytes_view data;                           // empty where `type` is none
};

/// A GGUF file (version 2 or 3, little endian), read in place; all parts of a split one. Every
/// length, offset and count has been checked against the file's size before it is used.
class gguf_file {
 public:
  static result<gguf_file> open(const std::filesystem::path& path);
  /// One part, from memory that outlives the result.
  static result<gguf_file> parse(bytes_view bytes, std::string name);

  const std::string& name() const noexcept { return name_; }

  bool has(std::string_view key) const { return find(key) != nullptr; }
  const gguf_value* find(std::string_view key) const;
  /// None: no such key. An error: its value has another type or does not fit.
  result<std::optional<uint32_t>> get_u32(std::string_view key) const;  // any integer type
  result<std::optional<float>> get_f32(std::string_view key) const;     // f32 or f64
  result<std::optional<bool>> get_bool(std::string_view key) const;
  result<std::optional<std::string_view>> get_text(std::string_view key) const;
  /// Empty: no such key, or an empty array.
  result<std::vector<std::string_view>> get_texts(std::string_view key) const;
  result<std::vector<float>> get_floats(std::string_view key) const;
  result<std::vector<int32_t>> get_ints(std::string_view key) const;    // any integer elements
  result<std::vector<uint8_t>> get_octets(std::string_view key) const;  // i8 or u8 elements
  /// Every key, as the file orders them.
  std::span<const std::string_view> keys() const noexcept { return keys_; }

  std::span<const gguf_tensor> tensors() const noexcept { return tensors_; }
  const gguf_tensor* find_tensor(std::string_view tensor_name) const;
  /// The pages of these bytes will not be read again soon.
  void release(bytes_view part) const noexcept;

 private:
  friend class gguf_parser;
  gguf_file() = default;
  result<void> add_parts(const std::filesystem::path& first, uint32_t count);

  std::string name_;
  std::vector<mapped_file> parts_;
  std::vector<std::string_view> keys_;
  std::unordered_map<std::string_view, gguf_value> values_;
  std::vector<gguf_tensor> tensors_;
  std::unordered_map<std::string_view, uint32_t> tensor_index_;
};

}  // namespace lethe

#pragma once

#include <cstdio>
#include <filesystem>
#include <memory>
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

/// A file that appears under its name only when it is whole: written under another name in the
/// same folder, which an unfinished one leaves with the object.
class whole_file {
 public:
  static result<whole_file> create(const std::filesystem::path& path);
  whole_file(whole_file&&) noexcept = default;
  whole_file& operator=(whole_file&&) = delete;
  ~whole_file();

  result<void> write(bytes_view bytes);
  /// Zeros up to the next multiple.
  result<void> pad(uint64_t alignment);
  /// Flushes to the disk and gives the file its name.
  result<void> finish();
  uint64_t written() const noexcept { return written_; }

 private:
  struct closer {
    void operator()(std::FILE* f) const { std::fclose(f); }
  };
  whole_file() = default;
  error cannot(const char* what) const;

  std::filesystem::path path_, partial_;
  std::unique_ptr<std::FILE, closer> file_;
  uint64_t written_ = 0;
};

}  // namespace lethe

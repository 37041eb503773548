#pragma once

#include "runtime/model/byte_reader.hpp"
#include "runtime/model/gguf.hpp"

namespace lethe {

/// Reads one part of a GGUF file.
class gguf_parser {
 public:
  gguf_parser(gguf_file& into, bytes_view bytes) : into_(into), all_(bytes), in_(bytes) {}

  result<void> read();

 private:
  result<void> read_counts();
  result<void> read_keys();
  result<void> read_value(std::string_view key);
  result<void> skip_array(std::string_view key, gguf_value& value, uint32_t depth);
  result<void> skip_elements(std::string_view key, const gguf_value& array, uint32_t depth);
  result<void> read_alignment();
  result<void> read_tensor();
  result<void> read_dims(gguf_tensor& tensor);
  result<void> place_tensors();
  result<void> place(gguf_tensor& tensor, bytes_view data, uint64_t offset);
  result<void> check_overlaps() const;
  std::string_view read_text();
  error truncated(std::string_view what) const;

  gguf_file& into_;
  bytes_view all_;
  byte_reader in_;
  uint64_t tensor_count_ = 0, key_count_ = 0;
  uint64_t alignment_ = 32;
  std::vector<uint64_t> offsets_;  // of each tensor, from the begin of the data
};

}  // namespace lethe

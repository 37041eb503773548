#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/matrix.hpp"
#include "runtime/base/mapped_file.hpp"
#include "runtime/base/result.hpp"

namespace lethe {

struct safetensors_tensor {
  std::string name;
  std::string type_name;      // as the file says it
  std::optional<dtype> type;  // none: one that this program does not read
  std::vector<uint64_t> dims;
  bytes_view data;
};

/// A safetensors file, read in place. Its tensors fill the data without a hole or an overlap, as
/// the format demands, and none is there twice.
class safetensors_file {
 public:
  static result<safetensors_file> open(const std::filesystem::path& path);
  /// From memory that outlives the result.
  static result<safetensors_file> parse(bytes_view bytes, std::string name);

  const std::string& name() const noexcept { return name_; }
  std::span<const safetensors_tensor> tensors() const noexcept { return tensors_; }
  /// The pages of these bytes, if they are of this file, will not be read again soon.
  void release(bytes_view part) const noexcept;

 private:
  std::string name_;
  std::optional<mapped_file> file_;
  std::vector<safetensors_tensor> tensors_;  // in the order of their data
};

/// What model.safetensors.index.json says: which file of the folder holds which tensor.
struct safetensors_index {
  std::vector<std::string> files;                         // sorted, each once
  std::vector<std::pair<std::string, uint32_t>> tensors;  // name, index into files; sorted
};
result<safetensors_index> read_safetensors_index(std::string_view json, std::string_view where);

}  // namespace lethe

#pragma once

#include <optional>
#include <vector>

#include "runtime/model/checkpoint.hpp"
#include "runtime/model/gguf.hpp"
#include "runtime/model/problems.hpp"
#include "runtime/model/safetensors.hpp"
#include "runtime/model/tensor_faults.hpp"

namespace lethe {

/// The open files behind a checkpoint's views.
class checkpoint_source {
 public:
  std::vector<safetensors_file> shards;
  std::optional<gguf_file> gguf;

  void release(bytes_view part) const noexcept {
    for (const auto& shard : shards) shard.release(part);
    if (gguf) gguf->release(part);
  }
};

/// What a format's reader makes of a path.
struct checkpoint_parts {
  model_shape shape;
  generation_defaults defaults;
  bool known_family = false;  // else names and numbers say nothing about tensors
  bool has_weights = false;   // all files were read
  std::vector<raw_tensor> tensors;
  std::vector<unread_tensor> unread;
  tensor_faults faults;
  checkpoint_source source;
};

/// An error where nothing can be read at all; what is merely wrong or not supported is noted.
result<checkpoint_parts> read_hf_folder(const std::filesystem::path& folder,
                                        problem_list& problems);
result<checkpoint_parts> read_gguf_model(const std::filesystem::path& path, problem_list& problems);

}  // namespace lethe

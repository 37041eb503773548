#pragma once

#include "parallel/shape.hpp"
#include "runtime/model/generation_defaults.hpp"
#include "runtime/model/gguf.hpp"
#include "runtime/model/problems.hpp"

namespace lethe {

struct gguf_numbers {
  model_shape shape;
  bool known_family = false;
};

/// The shape that a GGUF file's metadata and the presence of tensors say. What is wrong or not
/// supported is noted; the shape is whole and within limits only when nothing was.
gguf_numbers read_gguf_shape(const gguf_file& file, problem_list& problems);

/// Which ids end generation.
generation_defaults read_gguf_defaults(const gguf_file& file, problem_list& problems);

/// Whether files of this architecture keep the rows of q and k as pairs that turn together.
bool has_interleaved_rope(std::string_view architecture);

}  // namespace lethe

#pragma once

#include <string_view>

#include "parallel/shape.hpp"
#include "runtime/model/config_fields.hpp"
#include "runtime/model/generation_defaults.hpp"
#include "runtime/model/problems.hpp"

namespace lethe {

struct model_config {
  model_shape shape;
  bool known_family = false;
  generation_defaults defaults;  // bos and eos, which generation_config.json may replace
};

/// A Hugging Face config.json; `where` names it. Everything that is wrong or not supported is
/// noted; the shape is whole and within limits only when nothing was.
model_config read_config(std::string_view json, std::string_view where, problem_list& problems);

/// Notes what would change the arithmetic and that we do not do: quantized weights, experts, other
/// activations, soft caps, other inputs than text.
void refuse_unsupported(const config_fields& config);

/// rope_theta, rope_scaling, rope_parameters, partial_rotary_factor. Raises the context where
/// yarn stretches it. Needs head_dim and context_max.
void read_rope(const config_fields& config, model_shape& shape);

}  // namespace lethe

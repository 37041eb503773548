#pragma once

#include <cstdint>
#include <vector>

#include "kernels/matrix.hpp"
#include "parallel/shape.hpp"

namespace lethe {

/// One layer's weights, whole: every rank of a process reads its part of the same panels.
/// Vectors are float, 64-byte aligned, or null where the family has none.
struct attention_weights {
  const float* norm;
  matrix q, k, v, o;
  const float *q_bias = nullptr, *k_bias = nullptr, *v_bias = nullptr, *o_bias = nullptr;
  const float *q_norm = nullptr, *k_norm = nullptr;
};

struct mlp_weights {
  const float* norm;
  matrix gate, up, down;
  const float *gate_bias = nullptr, *up_bias = nullptr, *down_bias = nullptr;
};

/// A feed-forward that is not an mlp (mixture of experts) becomes a second member here and a
/// second branch in stage.cpp; nothing else knows what is inside a layer.
struct layer_weights {
  attention_weights attention;
  mlp_weights mlp;
};

/// Views into memory that `loaded_model` (runtime/model/load.hpp) owns, or a device's.
struct model_weights {
  model_shape shape;
  matrix embed;
  std::vector<layer_weights> layers;
  const float* norm = nullptr;
  matrix head;  // the same panels as embed when tied
};

}  // namespace lethe

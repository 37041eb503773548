#pragma once

#include "actors/audit/no_trace.hpp"

namespace lethe::audit {

/// After an answer, nothing that the model computed of it is left: keys and values of each layer,
/// hidden rows, logits. The same request runs in this process first, which gives the very bytes to
/// look for: results are equal bit by bit, whoever computes them. The control is the same search in
/// the middle of an answer.
result<finding> measure_no_activations(const no_trace_settings& settings);

}  // namespace lethe::audit

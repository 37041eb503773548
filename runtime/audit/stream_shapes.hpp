#pragma once

#include "runtime/audit/answer_wire.hpp"

namespace lethe::audit {

struct shape_settings {
  std::shared_ptr<const served_model> model;               // its tokenizer and its name are used
  answer_shape shape{.chunk_bytes = 2048, .tick_ms = 50};  // what the log says
  uint32_t prompts = 50, captures = 24, tokens_most = 300;
  uint64_t seed = 1;
  double alpha = 1e-6;  // how often a promise that is held may be said to be broken
};

/// Which of the prompts was asked is guessed from what passes the relay (A5). Held: sizes and times
/// say no more than the number of pieces, a power of two, does by itself, and nothing between
/// prompts that have the same one. Controls: without the tick, and without any shape.
finding measure_answer_shapes(const shape_settings& s);

struct live_settings {
  uint32_t chunk_bytes = 2048;  // of the shape that the log says
  uint64_t seed = 1;
  double alpha = 1e-6;
};

/// The same from captures of a running cluster: sequences of (time since the request left, bytes)
/// as they passed a tap, several for each prompt and of each the same number, taken in turns: the
/// first of each prompt, then the second of each. What passes together may be one piece, and
/// heads may be among it. `unshaped`: the same of a cluster whose answers have no shape, or none.
finding judge_captures(const captures& shaped, const captures& unshaped,
                       const live_settings& s = {});

/// Captures of all prompts, taken in turns.
result<captures> capture_all(answer_wire& wire, const std::vector<known_answer>& answers,
                             const answer_shape& shape, uint32_t each, uint64_t seed);

}  // namespace lethe::audit

#pragma once

#include "actors/sim/sim_engine.hpp"

namespace lethe::sim {

struct right_answer {
  std::string text;
  const char* finish_reason = "length";
};
right_answer answer_to(const served_model& model, const next_token& words,
                       std::span<const uint32_t> prompt, uint32_t max_tokens);

/// What an answer of the API says: a text for each choice, or an error's code.
struct said_answer {
  bool form = false;  // it could be read
  std::string error;  // its code
  std::vector<right_answer> choices;
  std::vector<std::string> reasons;
};
said_answer read_answer(std::string_view body, bool stream, uint32_t choices);

}  // namespace lethe::sim

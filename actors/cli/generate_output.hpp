#pragma once

#include <span>
#include <string_view>

#include "runtime/serve/answer_text.hpp"

namespace lethe {

/// Seconds from submission to the first token and to the end, wiping included.
struct answer_times {
  double first = 0, all = 0;
};

/// Prints what `text` has beyond `printed`; returns how much is printed now.
size_t print_more(std::string_view text, size_t printed);
/// The other choices after the first was streamed, and the line's end.
void print_rest(const request& r, std::span<const answer_text> answers);
/// The one object of --json.
void print_json(const request& r, std::span<const answer_text> answers);
void print_speed(uint32_t prompt_tokens, uint32_t tokens, const answer_times& times,
                 const arena_report& wiped, const engine& serving);

}  // namespace lethe

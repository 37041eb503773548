#include "runtime/batch/step_loop.hpp"

namespace lethe {

void step_loop::take_tokens(std::span<const draw> of_choice, uint64_t at_ns) {
  const draw& first = of_choice.front();
  choice_state& c = first.state();
  const auto guesses = uint32_t(of_choice.size() - 1);
  uint32_t right = 0;
  bool lives = false;
  for (const draw& d : of_choice) {
    right = d.ahead;
    uint32_t guess = c.ids[c.published.load(std::memory_order_relaxed)];
    lives = take_token(d, at_ns);
    if (!lives || right == guesses || guess != d.drawn.id) break;
    accept_guess(planner_, first.of->id_, first.choice);
  }
  numbers_.tokens_decoded += right;
  numbers_.guesses += guesses;
  numbers_.guesses_right += right;
  if (!lives) return;
  c.ahead.learn(guesses, right);
  look_ahead(*first.of, first.choice);
}

/// Where no draw depends on the one before: neither by counts nor by a form. Guesses lie behind the
/// published tokens, where they are looked for when the step is made.
void step_loop::look_ahead(request& of, uint32_t choice) {
  auto& b = *of.body_;
  if (planner_.config.guess_rows == 0 || needs_counts(b.how) || b.form || is_early(of, choice))
    return;
  choice_state& c = b.choices[choice];
  std::span ids(c.ids);
  uint32_t made = c.published.load(std::memory_order_relaxed);
  uint32_t n = c.ahead.guess(b.prompt, ids.first(made), ids.subspan(made));
  guess(planner_, of.id_, choice, n);
}

}  // namespace lethe

#include "runtime/audit/stream_shapes.hpp"

#include <fmt/format.h>

#include "runtime/crypto/shape_text.hpp"

namespace lethe::audit {

namespace {

constexpr double nearly_all = 0.9;
constexpr const char* promise = "T";
constexpr const char* attacks = "A5";

struct looked {
  const char* name;
  fingerprint found;
};

plot plot_of(const std::vector<looked>& shapes) {
  plot p{.title = "Prompts told apart by sizes and times of their answers' pieces",
         .x = fmt::format("0: {}", shapes.front().name),
         .y = "share told apart",
         .bars = true};
  curve told{.name = "told apart"}, allowed{.name = "by the number of pieces alone"},
      chance{.name = "by chance"};
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (i > 0) p.x += fmt::format(", {}: {}", i, shapes[i].name);
    const auto& f = shapes[i].found;
    told.points.emplace_back(double(i), f.all.made.share());
    allowed.points.emplace_back(double(i), f.allowed);
    chance.points.emplace_back(double(i), f.all.by_chance);
  }
  p.curves = {told, allowed, chance};
  return p;
}

/// What the shaped ones show, against what the threat model says that remains.
void judge(const fingerprint& f, size_t prompts, double alpha, finding& out) {
  out.measured = text_of(f.all, prompts, alpha);
  out.bound = fmt::format(
      "the number of pieces, a power of two, is said: by it alone {} are told apart ({} classes)",
      percent(f.allowed), f.classes);
  if (f.within.of > 0) {
    out.measured += fmt::format(
        "; between prompts whose answers have the same number of pieces {} of {} guesses right",
        percent(f.within.share()), f.within.of);
    out.bound += fmt::format("; within one, by chance {}", percent(f.within_by_chance));
  }
  out.said = f.hidden(alpha) ? verdict::held : verdict::broken;
}

control control_without(std::string what, const fingerprint& f, size_t prompts, double alpha,
                        bool found) {
  return {.without = std::move(what), .measured = text_of(f.all, prompts, alpha), .found = found};
}

/// Nothing is hidden: nearly every guess is right.
bool told_nearly_all(const fingerprint& f) { return f.all.made.share() >= nearly_all; }

finding began(const char* what) { return {.promise = promise, .attacks = attacks, .what = what}; }

}  // namespace

result<captures> capture_all(answer_wire& wire, const std::vector<known_answer>& answers,
                             const answer_shape& shape, uint32_t each, uint64_t seed) {
  std::mt19937_64 dice(seed);
  captures all(answers.size());
  for (uint32_t turn = 0; turn < each; ++turn)
    for (size_t i = 0; i < answers.size(); ++i) {
      auto seen = wire.see(answers[i], shape, dice);
      if (!seen) return seen.why();
      all[i].push_back(std::move(seen->wire));
    }
  return all;
}

finding measure_answer_shapes(const shape_settings& s) {
  finding out = began("which of the prompts was asked, from sizes and times of sealed pieces");
  auto wire = answer_wire::make(s.model);
  if (!wire) return out.note = wire.why().text, out;
  const auto answers = make_answers(*s.model, s.prompts, s.tokens_most, s.seed);
  const answer_shape shapes[] = {{}, {.chunk_bytes = s.shape.chunk_bytes}, s.shape};
  std::vector<looked> all;
  for (const auto& shape : shapes) {
    auto taken = capture_all(**wire, answers, shape, s.captures, s.seed);
    if (!taken) return out.note = taken.why().text, out;
    all.push_back({name_of(shape.mode()), fingerprint_of(*taken, s.seed, shape.chunk_bytes)});
  }
  const auto &off = all[0].found, &size = all[1].found, &tick = all[2].found;
  judge(tick, s.prompts, s.alpha, out);
  if (tick.within.of == 0) {
    out.said = verdict::not_measured;
    out.note = "no two prompts have answers that are always of one class: take more prompts";
  }
  out.controls = {
      control_without("the tick (size alone)", size, s.prompts, s.alpha, !size.hidden(s.alpha)),
      control_without("any shape (off)", off, s.prompts, s.alpha, told_nearly_all(off))};
  out.plots = {plot_of(all)};
  if (out.note.empty())
    out.note = fmt::format("{}; {} captures of each prompt, half of them learnt from",
                           text_of(s.shape), s.captures);
  return out;
}

finding judge_captures(const captures& shaped, const captures& unshaped, const live_settings& s) {
  finding out = began("which of the prompts was asked, from what passed a tap of a live cluster");
  if (shaped.size() < 2) return out.note = "fewer than two prompts were captured", out;
  std::vector<looked> all{{"as the log says", fingerprint_of(shaped, s.seed, s.chunk_bytes)}};
  // On a busy machine an answer takes a piece more now and then: then no prompts' are always alike.
  judge(all[0].found, shaped.size(), s.alpha, out);
  if (!unshaped.empty()) {
    all.insert(all.begin(), {"off", fingerprint_of(unshaped, s.seed)});
    // More than the number of pieces could tell; a fast model's tokens leave together, now more,
    // now fewer, so that not all is told.
    const auto &off = all[0].found, &as_said = all[1].found;
    out.controls = {control_without("any shape (off)", off, unshaped.size(), s.alpha,
                                    binomial_at_least(off.all.made, as_said.allowed) <= s.alpha)};
  }
  out.plots = {plot_of(all)};
  return out;
}

}  // namespace lethe::audit

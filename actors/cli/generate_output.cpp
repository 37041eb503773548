#include "actors/cli/generate_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "runtime/json/json_text.hpp"

namespace lethe {

namespace {

/// A choice ended by a stop text was told so by its reader, whatever the engine saw first.
finish_reason reason_of(const request& r, const answer_text& answer, uint32_t i) {
  return answer.stopped() ? finish_reason::stop : r.choice(i).reason.load();
}

void write_top(json_text& out, std::span<const token_logprob> top) {
  out.open('[');
  for (const auto& t : top)
    out.open('[').number(uint64_t{t.id}).number(double(t.logprob)).close(']');
  out.close(']');
}

void write_choice(json_text& out, const request& r, const answer_text& answer, uint32_t i) {
  const choice_state& c = r.choice(i);
  uint32_t tokens = answer.tokens();
  out.key("ids").ids(std::span(c.ids).first(tokens));
  out.key("text").text(answer.text());
  out.key("finish_reason").text(name_of(reason_of(r, answer, i)));
  if (!r.how().want_logprob) return;
  out.key("logprobs").open('[');
  for (uint32_t t = 0; t < tokens; ++t) out.number(double(c.logprobs[t]));
  out.close(']').key("top_logprobs").open('[');
  uint32_t n = r.how().logprobs;
  for (uint32_t t = 0; t < tokens; ++t) write_top(out, std::span(c.top).subspan(size_t{t} * n, n));
  out.close(']');
}

void write_prompt_logprobs(json_text& out, const request& r) {
  out.key("prompt_logprobs").open('[').null();
  auto all = r.prompt_logprobs();
  for (size_t i = 1; i < all.size(); ++i) out.number(double(all[i]));
  out.close(']');
  uint32_t n = r.how().logprobs;
  if (n == 0) return;
  out.key("prompt_top_logprobs").open('[').null();
  for (size_t i = 1; i < all.size(); ++i) write_top(out, r.prompt_top().subspan(i * n, n));
  out.close(']');
}

}  // namespace

size_t print_more(std::string_view text, size_t printed) {
  if (text.size() == printed) return printed;
  std::fwrite(text.data() + printed, 1, text.size() - printed, stdout);
  std::fflush(stdout);
  return text.size();
}

void print_rest(const request& r, std::span<const answer_text> answers) {
  fmt::print("\n");
  for (uint32_t i = 1; i < r.choices(); ++i)
    fmt::print("\n--- choice {}\n{}\n", i, std::string_view(answers[i].text()));
  std::fflush(stdout);
}

void print_json(const request& r, std::span<const answer_text> answers) {
  json_text out(const_cast<request&>(r).memory());
  out.open('{').key("prompt_ids").ids(r.prompt());
  write_choice(out, r, answers[0], 0);
  if (r.wants_prompt_logprobs()) write_prompt_logprobs(out, r);
  if (r.choices() > 1) {
    out.key("choices").open('[');
    for (uint32_t i = 0; i < r.choices(); ++i) {
      out.open('{').key("index").number(uint64_t{i});
      write_choice(out, r, answers[i], i);
      out.close('}');
    }
    out.close(']');
  }
  out.close('}');
  std::fwrite(out.str().data(), 1, out.str().size(), stdout);
  fmt::print("\n");
  std::fflush(stdout);
}

void print_speed(uint32_t prompt_tokens, uint32_t tokens, const answer_times& times,
                 const arena_report& wiped, const engine& serving) {
  auto now = serving.numbers();
  double decode = times.all - times.first;
  fmt::print(stderr, "prompt {} tokens in {:.3f} s ({:.1f}/s); answer {} tokens", prompt_tokens,
             times.first, prompt_tokens / times.first, tokens);
  if (tokens > 1) fmt::print(stderr, " ({:.1f}/s)", (tokens - 1) / decode);
  fmt::print(stderr,
             "; reserved {} of {} pages, wrote {:.0f} % of them; wiped {} pages and {} KiB in "
             "{:.2f} ms; kernels {}\n",
             now.pages_reserved_peak, now.pages,
             100.0 * now.pages_written_at_peak / std::max(now.pages_reserved_peak, 1u),
             now.pages_wiped, wiped.bytes >> 10, double(wiped.nanoseconds) / 1e6,
             serving.config().row->name);
}

}  // namespace lethe

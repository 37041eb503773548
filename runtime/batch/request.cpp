#include "runtime/batch/request.hpp"

#include <algorithm>
#include <new>

#include "runtime/base/limits.hpp"

namespace lethe {

const char* name_of(finish_reason r) {
  switch (r) {
    case finish_reason::none:
      return "none";
    case finish_reason::stop:
      return "stop";
    case finish_reason::length:
      return "length";
    case finish_reason::cancelled:
      return "cancelled";
    case finish_reason::failed:
      return "failed";
    case finish_reason::stuck:
      return "stuck";
  }
  return "";
}

result<std::unique_ptr<request>> request::make(size_t arena_bytes) {
  auto memory = arena::make(arena_bytes);
  if (!memory) return memory.why();
  std::unique_ptr<request> made(new request(*std::move(memory)));
  void* at = made->memory_.take(sizeof(body), alignof(body));
  if (!at) return fail("request: an arena of {} bytes is too small", arena_bytes);
  made->body_ = new (at) body(made->memory());
  return made;
}

request::~request() { check(id_ == 0 || gone()); }

arena_report request::forget() {
  check(id_ == 0 || gone());
  body_ = nullptr;
  return memory_.destroy();
}

namespace {

result<void> check_numbers(const generate_ask& what, uint32_t vocab) {
  if (what.prompt.empty()) return fail("the prompt has no tokens; at least one is needed");
  for (uint32_t id : what.prompt)
    if (id >= vocab)
      return fail("prompt: token id {} is out of range; the model has {}", id, vocab);
  if (what.max_tokens == 0) return fail("max_tokens is 0; at least 1 is needed");
  if (what.min_tokens > what.max_tokens)
    return fail("min_tokens is {}, above max_tokens ({})", what.min_tokens, what.max_tokens);
  if (what.choices == 0 || what.choices > limits::choices_max)
    return fail("n is {}; supported: 1 to {}", what.choices, limits::choices_max);
  if (what.stop_ids.size() > limits::stops_max)
    return fail("{} stop ids; at most {}", what.stop_ids.size(), limits::stops_max);
  return {};
}

}  // namespace

result<void> request::ask(const generate_ask& what, uint32_t vocab) try {
  check(body_ && !body_->choices);
  if (auto ok = check_numbers(what, vocab); !ok) return ok.why();
  if (auto ok = check_sampling(what.how, vocab); !ok) return ok.why();
  body& b = *body_;
  b.prompt.assign(what.prompt.begin(), what.prompt.end());
  b.stop_ids.assign(what.stop_ids.begin(), what.stop_ids.end());
  b.bias.assign(what.how.bias.begin(), what.how.bias.end());
  b.how = what.how;
  b.how.bias = b.bias;
  max_tokens_ = what.max_tokens;
  min_tokens_ = what.min_tokens;
  if (auto ok = hold_stops_back(vocab); !ok) return ok.why();
  choices_ = what.choices;
  wants_prompt_logprobs_ = what.prompt_logprobs;
  if (wants_prompt_logprobs_) {
    b.prompt_logprobs.resize(b.prompt.size());
    b.prompt_top.resize(b.prompt.size() * b.how.logprobs);
  }
  auto* state = static_cast<choice_state*>(
      memory()->allocate(sizeof(choice_state) * choices_, alignof(choice_state)));
  for (uint32_t i = 0; i < choices_; ++i) {
    auto* c = new (state + i) choice_state(memory());
    c->ids.resize(max_tokens_);
    if (b.how.want_logprob) c->logprobs.resize(max_tokens_);
    c->top.resize(size_t{max_tokens_} * b.how.logprobs);
    if (!needs_counts(b.how)) continue;
    c->counts.reserve(uint32_t(std::min<size_t>(vocab, b.prompt.size() + max_tokens_)));
    c->counts.add_prompt(b.prompt);
  }
  constrain(what.form, vocab);
  b.choices = state;
  return {};
} catch (const std::bad_alloc&) {
  return fail(
      "request: {} prompt tokens and {} x {} answer tokens do not fit its memory; "
      "ask for fewer",
      what.prompt.size(), what.choices, what.max_tokens);
}

result<void> request::hold_stops_back(uint32_t vocab) {
  body& b = *body_;
  if (min_tokens_ == 0 || b.stop_ids.empty()) return {};
  b.before_min.assign((vocab + 63) / 64, ~uint64_t{0});
  if (vocab % 64 != 0) b.before_min.back() = (uint64_t{1} << vocab % 64) - 1;
  for (uint32_t id : b.stop_ids)
    if (id < vocab) b.before_min[id / 64] &= ~(uint64_t{1} << id % 64);
  bool any = std::ranges::any_of(b.before_min, [](uint64_t word) { return word != 0; });
  if (!any) return fail("min_tokens: every token of the model ends the answer");
  return {};
}

void request::constrain(const answer_constraint& form, uint32_t vocab) {
  if (!form.rules) return;
  check(form.words != nullptr);
  void* at = memory()->allocate(sizeof(grammar_run), alignof(grammar_run));
  body_->form =
      new (at) grammar_run(std::move(*form.rules), *form.words, choices_, vocab, memory());
}

uint32_t request::token_at(uint32_t choice, uint32_t position) const {
  uint32_t of_prompt = uint32_t(body_->prompt.size());
  return position < of_prompt ? body_->prompt[position]
                              : body_->choices[choice].ids[position - of_prompt];
}

void request::publish(uint32_t change) {
  // Whoever sees gone_bit may end this object at once: nothing of it is read after that.
  auto watcher = watcher_;
  events_.fetch_add(change, std::memory_order_release);
  events_.notify_all();
  if (watcher) watcher->changed();
}

}  // namespace lethe

#include <list>
#include <new>

#include "runtime/base/limits.hpp"
#include "runtime/serve/api_request.hpp"

namespace lethe {

namespace {

/// What a request says of some tokens in a row.
struct scored_tokens {
  std::span<const uint32_t> ids;
  std::span<const float> logprobs;
  std::span<const token_logprob> top;  // so many for each
};

const api_error engine_lost{.status = 503,
                            .type = "server_error",
                            .code = "engine_lost",
                            .message = "the engine failed while it answered; ask again",
                            .retry_after_s = 1};

api_error form_too_wide(const api_ask& a) {
  return wrong_param(a.tools_are == tool_use::required ? "tools" : a.form_param,
                     "the form of the answer let no token follow within its limits, which are {} "
                     "steps for a token and {} ways to go on at once; ask for a narrower one",
                     limits::grammar_mask_steps_max, limits::grammar_stacks_max);
}

/// As clients see them. `top` keeps their alternatives, and has room for them.
void append_said(const scored_tokens& from, const tokenizer& words,
                 std::pmr::vector<said_token>& into, std::pmr::vector<said_alternative>& top) {
  size_t each = from.ids.empty() ? 0 : from.top.size() / from.ids.size();
  for (size_t t = 0; t < from.ids.size(); ++t) {
    size_t begin = top.size();
    for (const auto& likely : from.top.subspan(t * each, each))
      top.push_back({words.token_bytes(likely.id), likely.logprob});
    into.push_back({words.token_bytes(from.ids[t]), from.logprobs[t],
                    std::span<const said_alternative>(top).subspan(begin)});
  }
}

}  // namespace

/// Tokens [first, last) of a choice; where the prompt is echoed, before the first its own.
std::pmr::vector<said_token> api_request::tokens_of(const spoken& s, uint32_t first, uint32_t last,
                                                    std::pmr::vector<said_alternative>& top) const {
  const tokenizer& words = by_.model->words;
  const choice_state& c = s.from->choice(s.choice);
  size_t each = state_->ask.logprobs, count = last - first;
  bool echo = state_->ask.echo && first == 0 && !s.begun;
  auto prompt = s.from->prompt();
  top.reserve((count + (echo ? prompt.size() : 0)) * each);
  std::pmr::vector<said_token> all(top.get_allocator());
  if (echo) {
    append_said({prompt, s.from->prompt_logprobs(), s.from->prompt_top()}, words, all, top);
    all.front().first = true;
  }
  append_said({std::span(c.ids).subspan(first, count), std::span(c.logprobs).subspan(first, count),
               std::span(c.top).subspan(first * each, count * each)},
              words, all, top);
  return all;
}

/// A choice ended by a stop text was told so by its reader, whatever the engine saw first.
finish_reason api_request::reason_of(const spoken& s) const {
  if (s.text.stopped()) return finish_reason::stop;
  return s.from->choice(s.choice).reason.load(std::memory_order_acquire);
}

/// An answer that was cut says so, even if a call was whole before.
const char* api_request::said_reason(const spoken& s) const {
  auto reason = reason_of(s);
  return reason == finish_reason::stop && !s.calls().empty() ? "tool_calls" : name_of(reason);
}

/// Takes what is new; whether that was the last of it.
bool api_request::read(spoken& s) {
  if (s.text.stopped()) return true;
  // The end is looked at first: whoever published it had published every token.
  bool ended = reason_of(s) != finish_reason::none;
  s.text.read(s.from->choice(s.choice));
  if (s.tools) s.tools->read(s.text.text(), ended || s.text.stopped());
  if (!s.text.stopped()) return ended;
  by_.serving->stop(*s.from, s.choice);
  return true;
}

void api_request::pump(answer_sink& out) try {
  if (answered_ || !state_) return;
  bool all = true;
  for (spoken& s : state_->choices) {
    bool last = read(s);
    auto reason = reason_of(s);
    if (reason == finish_reason::failed || reason == finish_reason::cancelled)
      return fail_late(engine_lost, out);
    if (reason == finish_reason::stuck) return fail_late(form_too_wide(state_->ask), out);
    s.ended = last;
    if (state_->ask.stream) say_more(s, out);
    all = all && last;
  }
  if (!all) return;
  state_->ask.stream ? end_stream(out) : say_whole(out);
  answered_ = true;
} catch (const std::bad_alloc&) {
  fail_late(engine_lost, out);
}

/// An error when the answer may have begun.
void api_request::fail_late(const api_error& why, answer_sink& out) {
  cancel();
  if (!state_->ask.stream) {
    refuse(why, out);
    return;
  }
  out.piece("data: " + to_json(why) + "\n\n");
  answered_ = true;
}

void api_request::say_more(spoken& s, answer_sink& out) {
  if (s.over) return;
  const api_ask& a = state_->ask;
  std::string_view text = s.words().substr(s.said_bytes);
  auto calls = s.calls().subspan(s.said_calls);
  bool scored_echo = !s.begun && a.echo && a.want_logprobs;
  if (scored_echo && s.text.tokens() == 0 && !s.ended) return;  // the prompt is being read
  bool tokens = a.want_logprobs && (scored_echo || s.text.tokens() > s.said_tokens);
  if (s.begun && text.empty() && calls.empty() && !tokens && !s.ended) return;
  std::pmr::string echoed(&state_->pool);
  if (!s.begun && a.echo) echoed.append(echo_of(s)).append(text);
  std::pmr::string called(&state_->pool);
  if (!calls.empty()) called = tool_calls_json(calls, s.said_calls, true, &state_->pool);
  std::pmr::vector<said_alternative> top(&state_->pool);
  std::pmr::vector<said_token> said(&state_->pool);
  if (tokens) said = tokens_of(s, s.said_tokens, s.text.tokens(), top);
  said_choice c{.index = uint32_t(&s - state_->choices.data()),
                .text = echoed.empty() ? text : std::string_view(echoed),
                .tool_calls = called,
                .finish_reason = s.ended ? said_reason(s) : nullptr,
                .tokens = said,
                .text_offset = s.said_token_bytes};
  out.piece(state_->writer->chunk(c, !s.begun, a.include_usage));
  for (const auto& t : said) s.said_token_bytes += uint32_t(t.text.size());
  s.said_bytes = s.words().size();
  s.said_calls = uint32_t(s.calls().size());
  s.said_tokens = s.text.tokens();
  s.begun = true;
  s.over = s.ended;
}

void api_request::say_whole(answer_sink& out) {
  const api_ask& a = state_->ask;
  auto* pool = &state_->pool;
  std::pmr::vector<said_choice> all(pool);
  // Views into these: they must not move.
  std::pmr::list<std::pmr::vector<said_alternative>> tops(pool);
  std::pmr::list<std::pmr::vector<said_token>> tokens(pool);
  std::pmr::list<std::pmr::string> texts(pool);
  for (const spoken& s : state_->choices) {
    said_choice c{
        .index = uint32_t(all.size()), .text = s.words(), .finish_reason = said_reason(s)};
    if (!s.calls().empty())
      c.tool_calls = texts.emplace_back(tool_calls_json(s.calls(), 0, false, pool));
    if (a.echo) c.text = texts.emplace_back(echo_of(s)).append(s.words());
    if (a.want_logprobs)
      c.tokens = tokens.emplace_back(tokens_of(s, 0, s.text.tokens(), tops.emplace_back()));
    all.push_back(c);
  }
  auto body = state_->writer->whole(all, usage());
  out.head({.content_length = body.size()});
  out.piece(body);
}

void api_request::end_stream(answer_sink& out) {
  if (state_->ask.include_usage) out.piece(state_->writer->usage_chunk(usage()));
  out.piece(answer_writer::done);
}

/// The prompt as its tokens read: what a client wrote, or what its ids say.
std::pmr::string api_request::echo_of(const spoken& s) const {
  return by_.model->words.decode(s.from->prompt(), true, &state_->pool);
}

api_usage api_request::usage() const {
  api_usage u;
  for (const auto& part : parts_) u.prompt_tokens += uint32_t(part->prompt().size());
  for (const spoken& s : state_->choices) u.completion_tokens += s.text.tokens();
  return u;
}

}  // namespace lethe

#include "runtime/serve/api_request.hpp"

#include <sys/random.h>

#include <algorithm>
#include <ctime>
#include <new>

#include "runtime/api/compile_form.hpp"
#include "runtime/api/forced_calls.hpp"
#include "runtime/api/template_messages.hpp"
#include "runtime/base/limits.hpp"

namespace lethe {

namespace {

constexpr size_t arena_bytes_least = size_t{320} << 20;  // reserved, not committed

const api_error too_large{
    .status = 413, .code = "request_too_large", .message = "the request does not fit its memory"};

/// Of this host; nobody is told in these words.
const api_error no_memory{.status = 429};

}  // namespace

result<std::unique_ptr<api_request>> api_request::make(const api_service& by, size_t body_bytes) {
  // The template's values and the rendered text take several times the body.
  auto memory = arena::make(arena_bytes_least + body_bytes * 64);
  if (!memory) return memory.why();
  return std::unique_ptr<api_request>(new api_request(by, *std::move(memory)));
}

/// However its owner ends: the engine lets go first.
api_request::~api_request() {
  cancel();
  for (const auto& part : parts_) {
    if (part->id() == 0) continue;
    for (uint32_t seen = part->events(); !part->gone(); seen = part->events()) part->wait(seen);
  }
  if (state_) std::destroy_at(state_);
}

bool api_request::begin(api_call call, std::string_view body,
                        std::shared_ptr<request_watcher> watcher, answer_sink& out) try {
  void* at = memory_.take(sizeof(state), alignof(state));
  if (!at) return refuse(too_large, out);
  state_ = new (at) state(memory_.resource());
  state_->ask.call = call;
  if (auto why = understand(body)) return refuse(*why, out);
  auto why = prepare(watcher);
  if (why && why->status != no_memory.status) return refuse(*why, out);
  if (why || !submit_all()) {
    answered_ = true;  // by our owner
    return false;
  }
  if (state_->ask.stream) out.head({.content_type = "text/event-stream"});
  return true;
} catch (const std::bad_alloc&) {
  return refuse(too_large, out);
}

bool api_request::refuse(const api_error& why, answer_sink& out) {
  std::string body = to_json(why);
  out.head(
      {.status = why.status, .retry_after_s = why.retry_after_s, .content_length = body.size()});
  out.piece(body);
  return answered_ = true;
}

namespace {

/// The same for nobody and never again: it says nothing of who asks.
std::string random_id(api_call call) {
  uint64_t bits[2];
  check(getrandom(bits, sizeof bits, 0) == ssize_t{sizeof bits});
  const char* kind = call == api_call::chat ? "chatcmpl" : "cmpl";
  return fmt::format("{}-{:016x}{:016x}", kind, bits[0], bits[1]);
}

api_refusal check_ask(const api_ask& a, const served_model& m) {
  if (a.model != std::string_view(m.name))
    return api_error{.status = 404,
                     .code = "model_not_found",
                     .param = "model",
                     .message = fmt::format("this cluster serves {}; see /v1/models", m.name)};
  if (a.call == api_call::chat && !m.chat)
    return wrong_param("messages", "this model has no chat template; use /v1/completions");
  size_t prompts = a.call == api_call::chat ? 1 : a.prompts.size();
  if (prompts * a.choices > limits::choices_max)
    return wrong_param("n", "{} prompts with {} choices each are more than {} answers", prompts,
                       a.choices, limits::choices_max);
  return {};
}

}  // namespace

api_refusal api_request::understand(std::string_view body) {
  api_ask& a = state_->ask;
  auto rules = by_.rules;
  rules.choices_max = std::min(rules.choices_max, by_.serving->config().running);
  if (auto why = read_ask(body, rules, a)) return why;
  if (auto why = check_ask(a, *by_.model)) return why;
  state_->id = random_id(a.call);
  state_->writer.emplace(a.call, state_->id, by_.model->name, std::time(nullptr), a.want_logprobs,
                         &state_->pool);
  return {};
}

result<std::pmr::vector<uint32_t>> api_request::prompt_ids(uint32_t i) {
  const api_ask& a = state_->ask;
  const tokenizer& words = by_.model->words;
  auto* memory = &state_->pool;
  if (a.call == api_call::completion) {
    const auto& p = a.prompts[i];
    if (p.is_ids) return std::pmr::vector<uint32_t>(p.ids, memory);
    return words.encode(p.text, {.mend_utf8 = true}, memory);
  }
  const auto& chat = *by_.model->chat;
  bool tools = may_call(a);
  auto messages = template_messages(*a.messages, memory);
  auto rendered = chat.program.render(
      {.messages = messages,
       .tools = tools ? a.tools->raw() : std::string_view(),
       .variables = a.template_variables ? a.template_variables->raw() : std::string_view(),
       .bos_token = chat.bos_token,
       .eos_token = chat.eos_token,
       .add_generation_prompt = a.add_generation_prompt,
       .now = std::time(nullptr)},
      memory);
  if (!rendered) return rendered.why();
  // The template wrote bos itself where the model wants one.
  return words.encode(*rendered, {.add_special = false}, memory);
}

namespace {

/// What was asked; without it the default or what it must have, as far as the context reaches.
uint32_t max_tokens_for(const api_ask& a, const engine_config& c, size_t prompt_tokens) {
  if (a.max_tokens) return *a.max_tokens;
  uint32_t room = prompt_tokens < c.context ? uint32_t(c.context - prompt_tokens) : 1;
  return std::min(std::max(c.default_max_tokens, a.min_tokens), room);
}

sampling how_of(const api_ask& a, const generation_defaults& defaults) {
  sampling how = with_defaults(a.wishes, defaults);
  how.presence_penalty = a.presence_penalty;
  how.frequency_penalty = a.frequency_penalty;
  how.bias = a.bias;
  how.seed = a.seed ? *a.seed : random_seed();
  how.want_logprob = a.want_logprobs;
  how.logprobs = a.logprobs;
  return how;
}

/// What is wrong with it begins with the parameter's name.
api_error wrong_sampling(const error& why) {
  return wrong_param(why.text.substr(0, why.text.find(' ')), "{}", why.text);
}

size_t part_bytes(const api_ask& a, size_t prompt_tokens, uint32_t max_tokens) {
  size_t per_token = 64 + size_t{a.logprobs} * sizeof(token_logprob);
  size_t answer = size_t{a.choices} * max_tokens * per_token;
  size_t form = a.form == answer_form::text ? 0 : form_bytes_max;
  size_t echoed = a.echo ? prompt_tokens * per_token : 0;
  return (size_t{16} << 20) + prompt_tokens * 64 + echoed + answer + form;
}

}  // namespace

api_refusal api_request::add_prompt(uint32_t i, const std::shared_ptr<request_watcher>& watcher) {
  const api_ask& a = state_->ask;
  const char* param = a.call == api_call::chat ? "messages" : "prompt";
  auto ids = prompt_ids(i);
  if (!ids) return wrong_param(param, "{}", ids.why().text);
  const auto& c = by_.serving->config();
  uint32_t max_tokens = max_tokens_for(a, c, ids->size());
  if (ids->size() + uint64_t{max_tokens} > c.context) {
    auto why =
        wrong_param(param, "the context is {} tokens; the prompt has {} and the answer may take {}",
                    c.context, ids->size(), max_tokens);
    why.code = "context_length_exceeded";
    return why;
  }
  if (a.min_tokens > max_tokens)
    return wrong_param("min_tokens", "min_tokens is {}; the answer may take {} tokens at most",
                       a.min_tokens, max_tokens);
  auto made = request::make(part_bytes(a, ids->size(), max_tokens));
  if (!made) return no_memory;
  request& r = **made;
  parts_.push_back(*std::move(made));
  std::pmr::vector<uint32_t> stop_ids(a.stop_ids, &state_->pool);
  if (!a.ignore_eos)
    stop_ids.insert(stop_ids.end(), by_.model->stop_ids.begin(), by_.model->stop_ids.end());
  generate_ask ask{.prompt = *ids,
                   .max_tokens = max_tokens,
                   .min_tokens = a.min_tokens,
                   .choices = a.choices,
                   .how = how_of(a, by_.model->model.defaults()),
                   .stop_ids = stop_ids,
                   .prompt_logprobs = a.echo && a.want_logprobs};
  std::optional<grammar> rules;
  if (auto why = compile_form(a, by_.model->call_format(), rules)) return why;
  if (rules) ask.form = {&*rules, by_.model->trie.get()};
  uint32_t vocab = by_.model->model.shape().vocab;
  if (auto ok = check_sampling(ask.how, vocab); !ok) return wrong_sampling(ok.why());
  if (auto ok = r.ask(ask, vocab); !ok) return wrong_param(param, "{}", ok.why().text);
  if (auto ok = by_.serving->fits(r); !ok) return api_error{.message = ok.why().text};
  r.watch(watcher);
  return {};
}

void api_request::add_choice(request& part, uint32_t choice, stop_matcher stops) {
  const api_ask& a = state_->ask;
  auto* memory = &state_->pool;
  auto format = tool_format::none;
  if (a.tools_are == tool_use::required)
    format = forced_call_format;
  else if (may_call(a) && a.form == answer_form::text)
    format = by_.model->call_format();  // in another form, what looks like a call is none
  std::span<const uint32_t> marks;
  if (format == by_.model->call_format()) marks = by_.model->tool_marks;
  answer_text::rules how{
      .marks = marks, .skip_special = a.skip_special, .min_tokens = a.min_tokens};
  spoken s{&part, choice, answer_text(&by_.model->words, std::move(stops), memory, how), {}};
  if (format != tool_format::none) s.tools.emplace(format, memory);
  state_->choices.push_back(std::move(s));
}

api_refusal api_request::prepare(const std::shared_ptr<request_watcher>& watcher) {
  api_ask& a = state_->ask;
  auto* memory = &state_->pool;
  std::pmr::vector<std::string_view> stops(a.stops.begin(), a.stops.end(), memory);
  auto matcher = stop_matcher::make(stops, a.include_stop, memory);
  if (!matcher) return wrong_param("stop", "{}", matcher.why().text);
  uint32_t prompts = a.call == api_call::chat ? 1 : uint32_t(a.prompts.size());
  for (uint32_t i = 0; i < prompts; ++i)
    if (auto why = add_prompt(i, watcher)) return why;
  for (const auto& part : parts_)
    for (uint32_t c = 0; c < a.choices; ++c) add_choice(*part, c, matcher->fork(memory));
  return {};
}

bool api_request::submit_all() {
  bool taken = std::ranges::all_of(
      parts_, [this](const auto& part) { return bool(by_.serving->submit(*part)); });
  if (!taken) cancel();
  return taken;
}

void api_request::cancel() {
  for (const auto& part : parts_)
    if (part->id() != 0) by_.serving->cancel(*part);
}

bool api_request::over() const {
  bool idle = std::ranges::all_of(parts_, [](const auto& p) { return p->id() == 0 || p->gone(); });
  return idle && (answered_ || !state_);
}

namespace {

void add_times(request_times& all, const request_times& part) {
  auto earlier = [](uint64_t& a, uint64_t b) { a = a == 0 || b == 0 ? a + b : std::min(a, b); };
  earlier(all.asked_ns, part.asked_ns);
  earlier(all.begun_ns, part.begun_ns);
  earlier(all.first_ns, part.first_ns);
  all.last_ns = std::max(all.last_ns, part.last_ns);
  all.between_tokens.add(part.between_tokens);
}

}  // namespace

api_report api_request::forget() {
  api_report report;
  if (state_) {
    auto u = usage();
    report.prompt_tokens = u.prompt_tokens;
    report.answer_tokens = u.completion_tokens;
    std::destroy_at(std::exchange(state_, nullptr));
  }
  for (auto& part : parts_) {
    add_times(report.times, part->times());
    report.bytes_wiped += part->forget().bytes;
    ++report.arenas;
  }
  parts_.clear();
  report.bytes_wiped += memory_.destroy().bytes;
  ++report.arenas;
  return report;
}

}  // namespace lethe

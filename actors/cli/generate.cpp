#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <optional>
#include <thread>

#include "actors/cli/commands.hpp"
#include "actors/cli/form.hpp"
#include "actors/cli/generate_flags.hpp"
#include "actors/cli/generate_output.hpp"
#include "actors/cli/prompt.hpp"
#include "runtime/serve/answer_text.hpp"
#include "runtime/serve/served_model.hpp"

namespace lethe {

namespace {

using steady = std::chrono::steady_clock;

double seconds_since(steady::time_point begin) {
  return std::chrono::duration<double>(steady::now() - begin).count();
}

/// Everything that serves all requests of a run.
struct session {
  generate_flags flags;
  checkpoint model;
  std::optional<tokenizer> words;  // none: the folder has only weights, ids go in and come out
  std::unique_ptr<loaded_model> weights;
  std::unique_ptr<engine> serving;
  std::vector<uint32_t> stop_ids;
  std::optional<token_trie> trie;  // where the answer has a form

  const tokenizer* tokens() const { return words ? &*words : nullptr; }
};

bool shows_progress(const generate_flags& f) { return !f.quiet && isatty(STDERR_FILENO); }

result<std::unique_ptr<loaded_model>> load(const generate_flags& f, const checkpoint& model,
                                           std::stop_token stop) {
  std::function<void(uint64_t, uint64_t)> progress;
  if (shows_progress(f))
    progress = [](uint64_t done, uint64_t all) {
      fmt::print(stderr, "\rloading {:3d} % of {} MiB", done * 100 / std::max<uint64_t>(all, 1),
                 all >> 20);
    };
  auto loaded =
      load_weights(model, f.quant, {.threads = 0, .progress = std::move(progress), .stop = stop});
  if (shows_progress(f)) fmt::print(stderr, "\r\x1b[K");
  if (loaded && !f.quiet)
    for (const auto& name : (*loaded)->unconverted())
      fmt::print(stderr, "lethe: --quant {}: {} keeps its type; its columns are no whole blocks\n",
                 f.quant, name);
  return loaded;
}

/// The model's own defaults, where the command line is silent.
void apply_defaults(generate_flags& f, const generation_defaults& d) {
  sampling how = with_defaults(f.wishes, d);
  how.presence_penalty = f.how.presence_penalty;
  how.frequency_penalty = f.how.frequency_penalty;
  how.bias = f.biases;
  how.want_logprob = f.logprobs.has_value();
  how.logprobs = f.logprobs.value_or(0);
  how.seed = f.seed ? *f.seed : random_seed();
  f.how = how;
}

std::vector<uint32_t> stop_ids_of(const generate_flags& f, const checkpoint& model,
                                  const tokenizer* words) {
  std::vector<uint32_t> ids = f.stop_ids;
  if (f.ignore_eos) return ids;
  auto own = own_stop_ids(model.defaults(), words);
  ids.insert(ids.end(), own.begin(), own.end());
  return ids;
}

/// Ids need no tokenizer: a folder without one still runs on --ids.
result<std::optional<tokenizer>> words_for(const generate_flags& f) {
  if (f.ids && f.stop.empty() && !has_form(f) && !has_tokenizer(f.model))
    return std::optional<tokenizer>();
  auto words = open_tokenizer(f.model);
  if (!words) return words.why();
  return std::optional<tokenizer>(*std::move(words));
}

result<session> open(generate_flags flags) {
  if (auto ok = understand(flags); !ok) return ok.why();
  auto model = checkpoint::open(flags.model);
  if (!model) return model.why();
  if (auto ok = check_cut(model->shape(), flags.engine.ranks); !ok) return ok.why();
  auto [words, weights] =
      read_while_loading([&] { return words_for(flags); },
                         [&](std::stop_token stop) { return load(flags, *model, stop); });
  if (!words) return words.why();
  if (!weights) return weights.why();
  auto serving = engine::start((*weights)->weights(), flags.engine);
  if (!serving) return serving.why();
  apply_defaults(flags, model->defaults());
  auto stops = stop_ids_of(flags, *model, *words ? &**words : nullptr);
  session s{std::move(flags),    *std::move(model),   *std::move(words),
            *std::move(weights), *std::move(serving), std::move(stops)};
  if (has_form(s.flags)) s.trie.emplace(*s.words);
  return s;
}

/// Reads the answers while they come; with `stream`, prints the first choice's text as it grows.
void follow(session& s, request& r, std::vector<answer_text>& answers, bool stream,
            answer_times& times) {
  auto begin = steady::now();
  size_t printed = 0;
  bool gone = false;
  while (!gone) {
    uint32_t seen = r.events();
    gone = r.gone();
    for (uint32_t i = 0; i < answers.size(); ++i) {
      bool before = answers[i].stopped();
      answers[i].read(r.choice(i));
      if (answers[i].stopped() && !before) s.serving->stop(r, i);
    }
    if (times.first == 0 && answers[0].tokens() > 0) times.first = seconds_since(begin);
    if (stream) printed = print_more(answers[0].text(), printed);
    if (std::ferror(stdout)) s.serving->cancel(r);  // nobody reads on
    if (!gone) r.wait(seen);
  }
  times.all = seconds_since(begin);
}

size_t arena_bytes_for(const session& s, size_t prompt_bytes) {
  size_t prompt_tokens = prompt_bytes + 4096;
  size_t per_answer_token = 64 + size_t{s.flags.how.logprobs} * sizeof(token_logprob);
  size_t answer = size_t{s.flags.choices} * s.flags.max_tokens.value_or(256);
  size_t logprobs = s.flags.prompt_logprobs ? prompt_tokens * per_answer_token : 0;
  size_t form = has_form(s.flags) ? form_bytes_max : 0;
  return (size_t{64} << 20) + prompt_tokens * 64 + answer * per_answer_token + logprobs + form;
}

/// What was asked; without it the default, as far as the context reaches.
uint32_t max_tokens_for(const session& s, size_t prompt_tokens) {
  if (s.flags.max_tokens) return *s.flags.max_tokens;
  const auto& c = s.serving->config();
  uint32_t room = prompt_tokens < c.context ? uint32_t(c.context - prompt_tokens) : 1;
  return std::min(c.default_max_tokens, room);
}

/// What is known of an answer after its request is forgotten.
struct served {
  std::string said;  // a conversation's next prompt needs it
  uint32_t prompt_tokens = 0, tokens = 0;
  answer_times times;
};

/// One prompt from text to answer. All that this makes of it lives in the request.
result<served> answer(session& s, request& r, const prompt_text& from) {
  auto ids = prompt_ids(from, s.tokens(), r.memory());
  if (!ids) return ids.why();
  const auto& f = s.flags;
  auto form = form_of(f, r.memory());
  if (!form) return form.why();
  generate_ask ask{.prompt = *ids,
                   .max_tokens = max_tokens_for(s, ids->size()),
                   .choices = f.choices,
                   .how = f.how,
                   .stop_ids = s.stop_ids,
                   .prompt_logprobs = f.prompt_logprobs};
  if (*form) ask.form = {&**form, &*s.trie};
  if (auto ok = r.ask(ask, s.model.shape().vocab); !ok) return ok.why();
  auto stops = stop_matcher::make(f.stops(), f.include_stop, r.memory());
  if (!stops) return stops.why();
  std::vector<answer_text> answers;
  for (uint32_t i = 0; i < f.choices; ++i)
    answers.emplace_back(s.tokens(), stops->fork(r.memory()), r.memory());
  if (auto ok = s.serving->submit(r); !ok) return ok.why();
  served done{.prompt_tokens = uint32_t(r.prompt().size())};
  follow(s, r, answers, !f.json, done.times);
  if (auto health = s.serving->health(); !health) return health.why();
  if (f.json)
    print_json(r, answers);
  else
    print_rest(r, answers);
  done.said = answers[0].text();
  done.tokens = answers[0].tokens();
  return done;
}

/// Answers, then forgets: nothing is left but what was printed, and in a conversation the answer.
result<std::string> serve(session& s, const prompt_text& from) {
  auto made = request::make(arena_bytes_for(s, from.bytes()));
  if (!made) return made.why();
  auto done = answer(s, **made, from);
  auto wiped = (*made)->forget();
  if (!done) return done.why();
  if (!s.flags.quiet)
    print_speed(done->prompt_tokens, done->tokens, done->times, wiped, *s.serving);
  return std::move(done->said);
}

int converse(session& s) {
  conversation talk;
  fmt::print(stderr, "A conversation; an empty line or ctrl-d ends it.\n");
  while (auto line = read_line("> ")) {
    talk.say("user", *line);
    auto said = serve(s, prompt_text::chat(talk.messages(), s.flags));
    if (!said) return refuse(said.why().text);
    talk.say("assistant", *said);
    fmt::print("\n");
  }
  return 0;
}

int run(const generate_flags& flags) {
  auto s = open(flags);
  if (!s) return refuse(s.why().text);
  if (flags.chat && flags.chat->empty()) return converse(*s);
  auto from = prompt_text::from(s->flags);
  if (!from) return refuse(from.why().text);
  auto said = serve(*s, *from);
  return said ? 0 : refuse(said.why().text);
}

}  // namespace

void add_generate(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<generate_flags>();
  auto* command = app.add_subcommand("generate", "Answer one prompt, or hold a conversation");
  declare(*command, *flags);
  command->callback([flags, &exit_code] { exit_code = run(*flags); });
}

}  // namespace lethe

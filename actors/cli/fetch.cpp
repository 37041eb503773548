#include <fmt/ranges.h>

#include <algorithm>

#include "actors/cli/commands.hpp"
#include "actors/cli/private_session.hpp"
#include "actors/cli/read_input.hpp"
#include "runtime/client/local_proxy.hpp"
#include "runtime/json/json_slice.hpp"

namespace lethe {

namespace {

/// The answer's body, as it comes.
class printed final : public inner_sink {
 public:
  explicit printed(answer_waiting& waits) : waits_(waits) {}
  bool head(uint32_t status, std::span<const bhttp_field>) override {
    waits_.answered();
    status_ = status;
    return true;
  }
  bool content(std::string_view piece) override {
    bool taken = std::fwrite(piece.data(), 1, piece.size(), stdout) == piece.size();
    return taken && std::fflush(stdout) == 0;
  }
  uint32_t status() const { return status_; }

 private:
  answer_waiting& waits_;
  uint32_t status_ = 0;
};

struct fetch_words {
  std::string trust, path = "/v1/chat/completions", data, prompt;
  bool explain = false, stream = false;
};

/// What was given as a body; with --prompt there is none.
result<std::string> given_body(const fetch_words& words) {
  if (!words.prompt.empty()) return std::string();
  const bool file = words.data.starts_with('@');
  auto body = words.data.empty() ? read_input("-")
              : file             ? read_input(words.data.substr(1))
                                 : result<std::string>(words.data);
  if (!body) return body;
  if (body->empty())
    return fail("there is no body: --data, --prompt or standard input; nothing was asked");
  auto json = check_json(*body);
  if (!json) return fail("the body is no JSON: {}; nothing was asked", json.why().text);
  if (!json->is(json_kind::object)) return fail("the body is no JSON object; nothing was asked");
  return body;
}

result<std::string> body_of(const fetch_words& words, std::string given, private_client& client) {
  if (words.prompt.empty()) return given;
  auto state = client.state();
  if (!state) return state.end.why;
  return chat_body(model_of(**state), {{"user", words.prompt}}, words.stream);
}

/// What no node would serve costs no token.
result<std::string> checked(const fetch_words& words) {
  if (std::ranges::find(call_paths, words.path) == std::end(call_paths))
    return fail("{}: there is no such path; a node serves {}; nothing was asked", words.path,
                fmt::join(call_paths, " and "));
  return given_body(words);
}

int fetch(const fetch_words& words) {
  auto given = checked(words);
  if (!given) return refuse(given.why().text);
  auto client = open_private(words.trust, {.on_a_timer = false}, words.explain);
  if (!client) return refuse(client.end.why.text);
  auto body = body_of(words, *std::move(given), **client);
  if (!body) return refuse(body.why().text);
  answer_waiting waits(words.explain);
  printed out(waits);
  private_ask ask{.path = words.path, .body = *body, .sink = out};
  ask.claim_at_once = true;
  ask.observer = waits.observer(words.explain);
  auto answer = (*client)->call(ask);
  if (answer.began && !words.stream) std::fputc('\n', stdout);
  if (words.explain && answer.proof) explain_views(answer);
  if (!answer) return refuse(answer.why.text);
  return out.status() < 400 ? 0 : refuse(fmt::format("the node answers {}", out.status()));
}

struct token_words {
  std::string trust;
  uint32_t batches = 1;
};

int buy(const token_words& words) {
  auto client = open_private(words.trust, {.on_a_timer = false});
  if (!client) return refuse(client.end.why.text);
  size_t bought = 0;
  for (uint32_t i = 0; i < words.batches; ++i) {
    auto more = (*client)->buy();
    if (!more) return refuse(fmt::format("{}; bought {} tokens", more.end.why.text, bought));
    bought += *more;
  }
  fmt::print("bought {} tokens; the wallet has {}\n", bought, (*client)->count().tokens);
  return 0;
}

/// Of the wallet alone, whoever has it: nobody is asked.
int count(const token_words& words) {
  auto trust = trust_file::read(words.trust);
  if (!trust) return refuse(trust.why().text);
  auto tokens = wallet::view(trust->wallet);
  if (!tokens) return refuse(tokens.why().text);
  const auto all = (*tokens)->count();
  fmt::print("{} tokens; {} were shown and may have change due\n", all.tokens, all.open);
  for (const auto& [key, n] : (*tokens)->count_by_key())
    fmt::print("  of the issuer's key {:02x}{:02x}{:02x}{:02x}: {} tokens; {} were shown\n",
               uint8_t(key[0]), uint8_t(key[1]), uint8_t(key[2]), uint8_t(key[3]), n.tokens,
               n.open);
  return 0;
}

int claim(const token_words& words) {
  auto client = open_private(words.trust, {.on_a_timer = false});
  if (!client) return refuse(client.end.why.text);
  auto done = (*client)->claim_pending();
  fmt::print("{} changed, nothing due for {}, {} to ask for later; the wallet has {} tokens\n",
             done.changed, done.none_due, done.later, (*client)->count().tokens);
  return done.why ? refuse(done.why->text) : 0;
}

}  // namespace

void add_fetch(CLI::App& app, int& exit_code) {
  auto* fetches = app.add_subcommand("fetch", "One request by the private path, for scripts");
  auto words = std::make_shared<fetch_words>();
  fetches->add_option("TRUST", words->trust, "the trust file; lethe keys public prints one")
      ->required();
  fetches->add_option("PATH", words->path, "of the OpenAI API")->capture_default_str();
  auto* data = fetches->add_option("--data", words->data,
                                   "the body, or @FILE that has it; default: standard input");
  fetches->add_option("--prompt", words->prompt, "one message of a chat, instead of a body")
      ->excludes(data);
  fetches->add_flag("--stream", words->stream, "with --prompt: as server-sent events");
  fetches->add_flag("--explain", words->explain, "each step, and who could see what");
  fetches->footer(
      "Prints the answer's body. It spends one token (lethe tokens buy), and one more for each\n"
      "further node that it draws when the first refuses; what nobody served is changed back.\n"
      "Example:\n"
      "  lethe fetch client.toml --prompt 'What is a river?' --explain");
  fetches->callback([=, &exit_code] { exit_code = fetch(*words); });
}

void add_tokens(CLI::App& app, int& exit_code) {
  auto* tokens = app.add_subcommand("tokens", "Blind tokens: buy them, count them, claim change");
  tokens->require_subcommand(1);
  auto words = std::make_shared<token_words>();
  auto add = [&](const char* name, const char* help) {
    auto* sub = tokens->add_subcommand(name, help);
    sub->add_option("TRUST", words->trust, "the trust file; it names wallet and account")
        ->required();
    return sub;
  };
  auto* buys = add("buy", "Buy a batch: the issuer learns the account, and never the tokens");
  buys->add_option("--batches", words->batches, "how many")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  buys->footer("Example:\n  lethe tokens buy client.toml");
  buys->callback([=, &exit_code] { exit_code = buy(*words); });
  auto* counts = add("count", "What the wallet has, by the keys that signed it; nobody is asked");
  counts->callback([=, &exit_code] { exit_code = count(*words); });
  add("claim", "Ask for the change of requests that nobody served")->callback([=, &exit_code] {
    exit_code = claim(*words);
  });
}

}  // namespace lethe

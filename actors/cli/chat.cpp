#include <fmt/format.h>
#include <unistd.h>

#include <iostream>

#include "actors/cli/commands.hpp"
#include "actors/cli/private_session.hpp"
#include "runtime/json/json_slice.hpp"

namespace lethe {

namespace {

using conversation = std::vector<std::pair<std::string, std::string>>;

/// Prints the words of server-sent events as they come, and keeps them for the next turn.
class spoken final : public inner_sink {
 public:
  explicit spoken(answer_waiting& waits) : waits_(waits) {}
  bool head(uint32_t status, std::span<const bhttp_field>) override {
    status_ = status;
    return true;
  }
  bool content(std::string_view piece) override {
    held_ += piece;
    if (status_ != 200) return true;
    for (size_t end; (end = held_.find('\n')) != held_.npos; held_.erase(0, end + 1))
      take(std::string_view(held_).substr(0, end));
    return std::fflush(stdout) == 0;
  }
  uint32_t status() const { return status_; }
  const std::string& said() const { return said_; }
  const std::string& rest() const { return held_; }

 private:
  void take(std::string_view line) {
    if (!line.starts_with("data: {")) return;
    auto json = check_json(line.substr(6));
    if (!json) return;
    auto choices = json->find("choices");
    if (!choices) return;
    choices->each([this](json_slice choice) {
      auto delta = choice.find("delta");
      auto words = delta ? delta->find("content") : std::nullopt;
      auto text = words ? words->text(std::pmr::get_default_resource()) : std::nullopt;
      if (!text) return true;
      if (!text->empty()) waits_.answered();
      std::fwrite(text->data(), 1, text->size(), stdout);
      said_.append(*text);
      return true;
    });
  }

  answer_waiting& waits_;
  uint32_t status_ = 0;
  std::string held_, said_;
};

struct chat_words {
  std::string trust, system;
  bool explain = false;
};

/// One turn; what was said goes into the conversation. False: it failed, and was told.
bool turn(private_client& client, const std::string& model, conversation& all, bool explain) {
  answer_waiting waits(explain);
  spoken out(waits);
  auto body = chat_body(model, all, true);
  private_ask ask{.path = "/v1/chat/completions", .body = body, .sink = out};
  ask.observer = waits.observer(explain);
  auto answer = client.call(ask);
  std::fputs("\n", stdout);
  if (explain && answer.proof) explain_views(answer);
  if (!answer) return refuse(answer.why.text), false;
  if (out.status() != 200)
    return refuse(fmt::format("the node answers {}: {}", out.status(), out.rest())), false;
  all.emplace_back("assistant", out.said());
  return true;
}

int chat(const chat_words& words) {
  auto client = open_private(words.trust, {}, words.explain);
  if (!client) return refuse(client.end.why.text);
  auto state = (*client)->state();
  if (!state) return refuse(state.end.why.text);
  std::string model = model_of(**state), line;
  bool terminal = isatty(STDIN_FILENO), good = true;
  if (terminal)
    fmt::print(stderr, "{} by the private path, {} tokens; an empty line or Ctrl-D ends\n", model,
               (*client)->count().tokens);
  conversation all;
  if (!words.system.empty()) all.emplace_back("system", words.system);
  while (true) {
    if (terminal) fmt::print(stderr, "> ");
    if (!std::getline(std::cin, line) || line.empty()) break;
    all.emplace_back("user", line);
    good = turn(**client, model, all, words.explain);
    if (!good) all.pop_back();  // asked again, it is a new question
    if (!good && !terminal) break;
  }
  return good ? 0 : 1;
}

}  // namespace

void add_chat(CLI::App& app, int& exit_code) {
  auto* chats = app.add_subcommand("chat", "Talk to a model by the private path");
  auto words = std::make_shared<chat_words>();
  chats->add_option("TRUST", words->trust, "the trust file; lethe keys public prints one")
      ->required();
  chats->add_option("--system", words->system, "the system line");
  chats->add_flag("--explain", words->explain, "each step, and who could see what");
  chats->footer(
      "A line is a question; each spends one token and carries the conversation so far, to a node\n"
      "that is drawn anew. Nothing of it is kept, here or there.\n"
      "Example:\n"
      "  lethe chat client.toml --explain");
  chats->callback([=, &exit_code] { exit_code = chat(*words); });
}

}  // namespace lethe

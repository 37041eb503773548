#include "actors/cli/prompt.hpp"

#include <charconv>
#include <cstdio>
#include <ctime>
#include <iostream>

#include "actors/cli/read_input.hpp"
#include "runtime/json/json_text.hpp"
#include "runtime/serve/open_model.hpp"

namespace lethe {

namespace {

result<std::vector<uint32_t>> parse_ids(std::string_view text) {
  std::vector<uint32_t> ids;
  const char *at = text.data(), *end = at + text.size();
  while (at < end) {
    uint32_t id = 0;
    auto [rest, wrong] = std::from_chars(at, end, id);
    if (wrong != std::errc() || (rest != end && *rest != ','))
      return fail("--ids: item {} is not a token id; write them as 1,2,3", ids.size());
    ids.push_back(id);
    at = rest + 1;
  }
  return ids;
}

/// JSON as it stands, or the file (- for standard input) that holds it.
result<std::string> json_or_file(const std::string& value) {
  if (value.empty() || value.front() == '[' || value.front() == '{') return value;
  return read_input(value);
}

result<opened_template> template_for(const generate_flags& f, const tokenizer& words) {
  if (f.template_path.empty()) return open_template(f.model, words);
  auto own = open_template(f.template_path);
  if (!own) return own;
  // A bare template has no bos and eos: the model's are meant.
  if (words.bos()) own->bos_token = words.token_text(*words.bos());
  if (words.eos()) own->eos_token = words.token_text(*words.eos());
  return own;
}

result<std::pmr::string> render(std::string_view messages, const generate_flags& f,
                                const tokenizer& words, std::pmr::memory_resource* memory) {
  auto opened = template_for(f, words);
  if (!opened) return opened.why();
  auto tools = json_or_file(f.tools);
  if (!tools) return tools.why();
  auto variables = json_or_file(f.variables);
  if (!variables) return variables.why();
  return opened->program.render({.messages = messages,
                                 .tools = *tools,
                                 .variables = *variables,
                                 .bos_token = opened->bos_token,
                                 .eos_token = opened->eos_token,
                                 .add_generation_prompt = true,
                                 .now = std::time(nullptr)},
                                memory);
}

}  // namespace

result<prompt_text> prompt_text::from(const generate_flags& f) {
  prompt_text made;
  made.flags_ = &f;
  if (f.ids) {
    auto ids = parse_ids(*f.ids);
    if (!ids) return ids.why();
    made.kind_ = kind::ids;
    made.ids_ = *std::move(ids);
  } else if (f.chat) {
    auto messages = json_or_file(*f.chat);
    if (!messages) return messages.why();
    return chat(*std::move(messages), f);
  } else {
    auto text = *f.prompt == "-" ? read_input("-") : result<std::string>(*f.prompt);
    if (!text) return text.why();
    made.text_ = *std::move(text);
  }
  return made;
}

prompt_text prompt_text::chat(std::string messages, const generate_flags& f) {
  prompt_text made;
  made.kind_ = kind::chat;
  made.text_ = std::move(messages);
  made.flags_ = &f;
  return made;
}

result<std::pmr::vector<uint32_t>> prompt_ids(const prompt_text& from, const tokenizer* words,
                                              std::pmr::memory_resource* memory) {
  if (from.kind_ == prompt_text::kind::ids)
    return std::pmr::vector<uint32_t>(from.ids_.begin(), from.ids_.end(), memory);
  if (from.kind_ == prompt_text::kind::text)
    return words->encode(from.text_, {.add_special = !from.flags_->no_special}, memory);
  auto rendered = render(from.text_, *from.flags_, *words, memory);
  if (!rendered) return rendered.why();
  // The template wrote bos itself where the model wants one.
  return words->encode(*rendered, {.add_special = false}, memory);
}

void conversation::say(std::string_view role, std::string_view content) {
  json_text message(std::pmr::get_default_resource());
  message.open('{').key("role").text(role).key("content").text(content).close('}');
  if (!said_.empty()) said_ += ',';
  said_ += message.str();
}

std::optional<std::string> read_line(const char* prompt) {
  std::fputs(prompt, stderr);
  std::string line;
  if (!std::getline(std::cin, line) || line.empty()) return {};
  return line;
}

}  // namespace lethe

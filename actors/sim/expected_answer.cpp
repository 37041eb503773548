#include "actors/sim/expected_answer.hpp"

#include <simdjson.h>

#include <algorithm>

namespace lethe::sim {

right_answer answer_to(const served_model& model, const next_token& words,
                       std::span<const uint32_t> prompt, uint32_t max_tokens) {
  right_answer right;
  std::vector<uint32_t> history(prompt.begin(), prompt.end());
  for (uint32_t i = 0; i < max_tokens; ++i) {
    uint32_t id = words.after(history);
    if (std::ranges::find(model.stop_ids, id) != model.stop_ids.end()) {
      right.finish_reason = "stop";
      return right;
    }
    right.text += model.words.token_bytes(id);
    history.push_back(id);
  }
  return right;
}

namespace {

using element = simdjson::dom::element;

bool add_event(element e, said_answer& to) {
  element error;
  if (e["error"].get(error) == simdjson::SUCCESS) {
    std::string_view code;
    to.error = error["code"].get(code) == simdjson::SUCCESS ? code : "uncoded";
    return true;
  }
  simdjson::dom::array choices;
  if (e["choices"].get(choices) != simdjson::SUCCESS) return false;
  for (element c : choices) {
    uint64_t index = 0;
    std::string_view text, reason;
    if (c["index"].get(index) != simdjson::SUCCESS || index >= to.choices.size()) return false;
    if (c["text"].get(text) != simdjson::SUCCESS) return false;
    to.choices[index].text += text;
    if (c["finish_reason"].get(reason) == simdjson::SUCCESS) to.reasons[index] = reason;
  }
  return true;
}

}  // namespace

said_answer read_answer(std::string_view body, bool stream, uint32_t choices) {
  said_answer said;
  said.choices.resize(choices);
  said.reasons.resize(choices);
  simdjson::dom::parser parser;
  auto add = [&](std::string_view text) {
    simdjson::padded_string padded(text);
    element e;
    return parser.parse(padded).get(e) == simdjson::SUCCESS && add_event(e, said);
  };
  if (!stream) {
    said.form = add(body);
    return said;
  }
  constexpr std::string_view head = "data: ", done = "[DONE]";
  while (!body.empty()) {
    size_t end = body.find("\n\n");
    if (end == body.npos || !body.starts_with(head)) return said;
    auto event = body.substr(head.size(), end - head.size());
    body.remove_prefix(end + 2);
    if (event == done) {
      said.form = body.empty();
      return said;
    }
    if (!add(event)) return said;
    if (!said.error.empty()) {
      said.form = body.empty();
      return said;
    }
  }
  return said;
}

}  // namespace lethe::sim

#pragma once

#include <simdjson.h>

#include <cstdlib>
#include <filesystem>
#include <memory_resource>
#include <string>
#include <string_view>

#include "runtime/template/chat_template.hpp"

namespace lethe {

/// What a template made of its input: the prompt, or why there is none.
struct outcome {
  std::string text, why;
};

inline outcome render(std::string_view source, render_input input = {},
                      std::string_view variables = {}) {
  if (input.messages.empty()) input.messages = "[]";
  if (!variables.empty()) input.variables = variables;
  const auto compiled = chat_template::compile(source);
  if (!compiled) return {.why = compiled.why().text};
  std::pmr::monotonic_buffer_resource memory;
  const auto prompt = compiled->render(input, &memory);
  if (!prompt) return {.why = prompt.why().text};
  return {.text = std::string(*prompt)};
}

/// A JSON value's text, "" where it is absent or null.
inline std::string json_text(simdjson::simdjson_result<simdjson::dom::element> e) {
  if (e.error() || e.is_null()) return {};
  return simdjson::minify(e.value_unsafe());
}

inline std::string string_of(simdjson::simdjson_result<simdjson::dom::element> e) {
  std::string_view text;
  return e.get(text) == simdjson::SUCCESS ? std::string(text) : std::string();
}

}  // namespace lethe

#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>

namespace lethe {

/// An error as OpenAI's clients know it. Its text goes to the asker only: it may name their
/// parameters, never their content, and no log takes it.
struct api_error {
  int status = 400;
  const char* type = "invalid_request_error";
  const char* code = nullptr;
  std::string param, message;
  uint32_t retry_after_s = 0;  // with 429 and 503
};

/// Nothing, or why not.
using api_refusal = std::optional<api_error>;

template <class... Args>
api_error wrong_param(std::string param, fmt::format_string<Args...> format, Args&&... args) {
  return {.param = std::move(param), .message = fmt::format(format, std::forward<Args>(args)...)};
}

/// {"error": {"message", "type", "param", "code"}}
std::string to_json(const api_error& e);

}  // namespace lethe

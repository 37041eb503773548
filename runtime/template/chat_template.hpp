#pragma once

#include <ctime>
#include <memory>
#include <memory_resource>
#include <string>
#include <string_view>

#include "runtime/base/result.hpp"

namespace lethe {

namespace jinja {
struct program;
}

/// What one rendering sees. JSON texts are only read during the call.
struct render_input {
  std::string_view messages;   // JSON array
  std::string_view tools;      // JSON array; empty: `none`
  std::string_view variables;  // JSON object of further variables; empty: none
  std::string_view bos_token, eos_token;
  bool add_generation_prompt = true;
  std::time_t now = 0;  // for strftime_now, as UTC
};

/// A model's chat template (Jinja), compiled. Immutable: threads may share it, copies are cheap.
class chat_template {
 public:
  /// Errors name the line and the construct.
  static result<chat_template> compile(std::string_view source);

  /// The prompt. The answer and every value on the way to it live in `memory`, which the caller
  /// wipes; error texts hold text of the template only, never of the messages.
  result<std::pmr::string> render(const render_input& input,
                                  std::pmr::memory_resource* memory) const;

 private:
  explicit chat_template(std::shared_ptr<const jinja::program> program);
  std::shared_ptr<const jinja::program> program_;
};

}  // namespace lethe

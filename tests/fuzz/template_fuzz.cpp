#include <simdjson.h>

#include <cstdlib>
#include <memory_resource>
#include <string_view>

#include "runtime/template/chat_template.hpp"

/// A template, a zero byte, and a message list. Any end is fine but a crash, a leak or a hang; and
/// what the message reader takes must be JSON to another parser as well.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const size_t cut = all.find('\0');
  const auto source = all.substr(0, cut);
  const auto messages = cut == all.npos ? std::string_view("[]") : all.substr(cut + 1);

  static const auto echo = *lethe::chat_template::compile("{{ messages | tojson }}");
  std::pmr::monotonic_buffer_resource memory;
  if (echo.render({.messages = messages}, &memory)) {
    simdjson::dom::parser parser;
    const auto error = parser.parse(simdjson::padded_string(messages)).error();
    // Whole numbers beyond 64 bits are floats to one and no numbers to the other.
    const bool same = !error || error == simdjson::NUMBER_ERROR;
    if (!same) std::abort();
  }
  const auto compiled = lethe::chat_template::compile(source);
  if (!compiled) return 0;
  const lethe::render_input input{.messages = messages,
                                  .tools = R"([{"function":{"name":"f","parameters":{"a":[1]}}}])",
                                  .variables = R"({"s":"Aé 😀","l":[3,1,2],"d":{"a":1,"b":[]}})",
                                  .bos_token = "<s>",
                                  .eos_token = "</s>"};
  (void)bool(compiled->render(input, &memory));
  return 0;
}

#include <cstddef>
#include <cstdint>

#include "runtime/api/api_ask.hpp"

/// A body of the API of any bytes, read as either call; what is taken keeps its limits.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view body(reinterpret_cast<const char*>(data), size);
  for (auto call : {lethe::api_call::chat, lethe::api_call::completion}) {
    std::pmr::monotonic_buffer_resource memory;
    lethe::api_ask ask(&memory);
    ask.call = call;
    auto refused = lethe::read_ask(body, {.labels_allowed = true}, ask);
    if (refused && (refused->status != 400 || refused->message.empty())) __builtin_trap();
    if (!refused && (ask.model.empty() || ask.choices == 0)) __builtin_trap();
    if (!refused && ask.messages)
      ask.messages->each([](lethe::json_slice m) { return m.find("role").has_value(); });
  }
  return 0;
}

#include <cstddef>
#include <cstdint>

#include "runtime/api/tool_calls.hpp"
#include "runtime/json/json_slice.hpp"

namespace {

bool same(const lethe::tool_reader& a, const lethe::tool_reader& b) {
  if (a.content() != b.content() || a.calls().size() != b.calls().size()) return false;
  for (size_t i = 0; i < a.calls().size(); ++i)
    if (a.calls()[i].name != b.calls()[i].name || a.calls()[i].arguments != b.calls()[i].arguments)
      return false;
  return true;
}

}  // namespace

/// The first byte says the format, the second where the text is cut: that changes nothing,
/// arguments are JSON, and without calls the words are the text.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  auto format = lethe::tool_format(data[0] % 5);
  std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  std::pmr::monotonic_buffer_resource memory;
  lethe::tool_reader whole(format, &memory), cut(format, &memory);
  whole.read(text, true);
  size_t step = 1 + data[1] % 16;
  for (size_t end = 0; end < text.size(); end += step) cut.read(text.substr(0, end), false);
  cut.read(text, true);
  if (!same(whole, cut)) __builtin_trap();
  if (whole.calls().empty() && whole.content() != text) __builtin_trap();
  for (const auto& c : whole.calls()) {
    if (c.id.empty() || c.name.empty()) __builtin_trap();
    // The bytes may be no UTF-8 here, which no answer's text is.
    auto json = lethe::check_json(c.arguments);
    if (!json || !json->is(lethe::json_kind::object)) __builtin_trap();
  }
  return 0;
}

#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/http/chunk_reader.hpp"
#include "runtime/http/http_client.hpp"
#include "runtime/http/request_head.hpp"

using namespace lethe;

/// Bytes as a request's head, an answer's head and a URL, and what follows the head as chunks: cut
/// in two anywhere, the chunks say the same.
namespace {

struct read_out {
  bool bad = false, done = false;
  std::string body;
  void feed(chunk_reader& r, std::string_view text) {
    while (!text.empty() && !bad && !done) {
      auto step = r.read(text);
      if (step.consumed == 0 || step.consumed > text.size()) __builtin_trap();
      body += step.payload;
      bad = step.what == chunk_reader::verdict::bad;
      done = step.what == chunk_reader::verdict::done;
      text.remove_prefix(step.consumed);
    }
  }
};

void compare_cuts(std::string_view text, size_t cut) {
  chunk_reader one, two;
  read_out whole, parts;
  whole.feed(one, text);
  parts.feed(two, text.substr(0, cut));
  parts.feed(two, text.substr(cut));
  if (whole.bad != parts.bad || whole.done != parts.done || whole.body != parts.body)
    __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  http_limits limits{.head_bytes_max = 2048, .fields_max = 8, .body_bytes_max = 1000};
  auto found = find_head_end(text, limits.head_bytes_max);
  auto* end = std::get_if<std::optional<size_t>>(&found);
  size_t from = 0;
  if (end != nullptr && *end) {
    from = **end;
    if (from > limits.head_bytes_max) __builtin_trap();
    auto read = read_head(text.substr(0, from), limits, std::pmr::get_default_resource());
    if (auto* head = std::get_if<http_head>(&read)) {
      if (head->content_length > limits.body_bytes_max || head->fields.size() > limits.fields_max)
        __builtin_trap();
      if (head->chunked && head->content_length > 0) __builtin_trap();
    }
  }
  for (bool head_only : {false, true})
    if (auto reply = read_reply(text.substr(0, from), head_only, limits.fields_max)) {
      if (reply->fields.size() > limits.fields_max) __builtin_trap();
      if (head_only && reply->frame != body_frame::none) __builtin_trap();
    }
  if (auto url = read_url(text); url && (url->first.host.empty() || !url->second.starts_with('/')))
    __builtin_trap();
  compare_cuts(text.substr(from), size > from ? (size - from) / 2 : 0);
  return 0;
}

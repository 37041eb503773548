#include <cstdlib>
#include <string_view>

#include "runtime/tokenizer/stream_decoder.hpp"
#include "runtime/tokenizer/tokenizer.hpp"

using namespace lethe;

// The input is a tokenizer.json, a zero byte, and a text. Whatever loads must encode the text (or
// refuse it), and decode what it made, whole and in pieces, to the same text.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view input(reinterpret_cast<const char*>(data), size);
  size_t end = std::min(input.find('\0'), size);
  std::string_view text = end < size ? input.substr(end + 1) : "";
  auto t = tokenizer::from_json(input.substr(0, end), "");
  if (!t) return 0;
  auto* memory = std::pmr::new_delete_resource();
  auto ids = t->encode(text, {.mend_utf8 = true}, memory);
  if (!ids) return 0;
  std::pmr::string pieces(memory);
  stream_decoder stream(*t, false, memory);
  for (uint32_t id : *ids) stream.push(id, pieces);
  stream.flush(pieces);
  if (pieces != t->decode(*ids, false, memory)) std::abort();
  return 0;
}

#include <cstddef>
#include <cstdint>

#include "runtime/model/gguf_shape.hpp"
#include "runtime/model/gguf_vocab_read.hpp"

/// A GGUF file of any bytes, then everything that is read out of one.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lethe::bytes_view bytes(reinterpret_cast<const std::byte*>(data), size);
  auto file = lethe::gguf_file::parse(bytes, "fuzz");
  if (!file) return 0;
  for (const auto& t : file->tensors())
    if (!t.data.empty() && t.data.data() + t.data.size() > bytes.data() + size) __builtin_trap();
  lethe::problem_list problems;
  auto [shape, known] = lethe::read_gguf_shape(*file, problems);
  if (problems.empty() && (!known || shape.layers == 0 || shape.heads % shape.kv_heads))
    __builtin_trap();
  lethe::read_gguf_defaults(*file, problems);
  if (auto vocab = lethe::read_vocab(*file)) {
    size_t all = 0;
    for (auto token : vocab->tokens) all += token.size();
    for (uint32_t id : vocab->eog)
      if (id >= vocab->tokens.size()) __builtin_trap();
    if (all > size) __builtin_trap();
  }
  return 0;
}

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace lethe {

/// A GGUF file's `tokenizer.*` metadata, checked: `tokens` is not empty, `scores` and `types` are
/// empty or as long as `tokens`, every id is below its size. The texts view the mapped file.
struct gguf_vocab {
  std::string_view model, pre;  // tokenizer.ggml.model: llama, gpt2, t5, ...; pre may be empty
  std::vector<std::string_view> tokens;
  std::vector<float> scores;
  std::vector<int32_t> types;  // 1 normal, 2 unknown, 3 control, 4 user, 5 unused, 6 byte
  std::vector<std::string_view> merges;
  std::optional<uint32_t> bos, eos, eot, eom, unk, pad;
  std::optional<bool> add_bos, add_eos, add_space_prefix, remove_extra_whitespaces;
  std::vector<uint8_t> precompiled_charsmap;  // t5 (Unigram) files
  std::string_view chat_template;             // empty: none
  std::vector<uint32_t> eog;                  // what ends an answer: eos, eot, eom and their kin
};

}  // namespace lethe

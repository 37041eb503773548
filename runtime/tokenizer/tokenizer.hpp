#pragma once

#include <cstdint>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.hpp"

namespace lethe {

struct gguf_vocab;
struct tokenizer_parts;

struct encode_options {
  bool add_special = true;    // what the model's template puts around a text: bos, eos, ...
  bool parse_special = true;  // false: text that spells a special token stays plain text
  bool mend_utf8 = false;     // true: invalid bytes become U+FFFD; false: they are refused
};

/// Text to token ids and back, as the model's own files define it. Immutable once built, so any
/// number of threads may share one. All that derives from a text lives in the caller's memory.
class tokenizer {
 public:
  /// From Hugging Face's tokenizer.json; tokenizer_config.json is optional (pass an empty text).
  static result<tokenizer> from_json(std::string_view tokenizer_json,
                                     std::string_view config_json = {});
  /// Copies what it needs: the file may be unmapped afterwards.
  static result<tokenizer> from_gguf(const gguf_vocab& vocab);

  tokenizer(tokenizer&&) noexcept;
  tokenizer& operator=(tokenizer&&) noexcept;
  ~tokenizer();

  result<std::pmr::vector<uint32_t>> encode(std::string_view text, encode_options options,
                                            std::pmr::memory_resource* memory) const;
  /// Valid UTF-8 always: bytes that are none become U+FFFD. Ids beyond the vocabulary (padding
  /// rows of an embedding) give nothing. A stream of pieces: stream_decoder.hpp.
  std::pmr::string decode(std::span<const uint32_t> ids, bool skip_special,
                          std::pmr::memory_resource* memory) const;

  /// The bytes that this token adds in the middle of a text; maybe half a character. Empty for
  /// ids that are not in the vocabulary.
  std::string_view token_bytes(uint32_t id) const noexcept;
  /// The token as the vocabulary spells it ("Ġthe", "▁the", "<0x0A>", "<|im_end|>").
  std::string_view token_text(uint32_t id) const noexcept;
  std::optional<uint32_t> id_of(std::string_view token_text) const noexcept;
  /// Control tokens: never part of what a user or a model says in words.
  bool is_special(uint32_t id) const noexcept;
  /// One more than the largest id.
  uint32_t vocab_size() const noexcept;

  std::optional<uint32_t> bos() const noexcept;
  std::optional<uint32_t> eos() const noexcept;
  std::optional<uint32_t> eot() const noexcept;  // end of a turn, where GGUF names one
  std::optional<uint32_t> unk() const noexcept;
  std::optional<uint32_t> pad() const noexcept;
  /// Whether encode with add_special puts bos first, eos last.
  bool adds_bos() const noexcept;
  bool adds_eos() const noexcept;

  /// Empty when there is none. Some models publish several ("default", "tool_use", ...).
  std::string_view chat_template(std::string_view name = "default") const noexcept;

 private:
  friend class stream_decoder;
  explicit tokenizer(std::unique_ptr<const tokenizer_parts> parts) noexcept;
  std::unique_ptr<const tokenizer_parts> parts_;
};

}  // namespace lethe

#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/tokenizer/added_tokens.hpp"
#include "runtime/tokenizer/bpe.hpp"
#include "runtime/tokenizer/decoder.hpp"
#include "runtime/tokenizer/normalizer.hpp"
#include "runtime/tokenizer/pre_tokenizer.hpp"
#include "runtime/tokenizer/score_bpe.hpp"
#include "runtime/tokenizer/unigram.hpp"
#include "runtime/tokenizer/vocabulary.hpp"
#include "runtime/tokenizer/wordpiece.hpp"

namespace lethe {

using any_model = std::variant<wordpiece, bpe, score_bpe, unigram>;

/// A tokenizer as its files define it: a text passes from top to bottom. Models point into
/// `tokens`, so this never moves.
struct tokenizer_parts {
  tokenizer_parts() = default;
  tokenizer_parts(const tokenizer_parts&) = delete;

  added_tokens raw_tokens;  // looked for in the text as it is
  std::vector<normalizers::any> normalizers;
  added_tokens normalized_tokens;  // looked for afterwards
  std::vector<pre_tokenizers::any> pre_tokenizers;
  any_model model;
  std::vector<uint32_t> before, after;  // what stands around a text

  vocabulary tokens;
  std::vector<bool> literal;  // by id: spelled as it reads, whatever the decoder does to words
  std::vector<decoders::step> decoders;

  std::optional<uint32_t> bos, eos, eot, unk, pad;
  std::vector<std::pair<std::string, std::string>> templates;  // name, text

  std::string middle_bytes;  // what each token adds in the middle of a text, one after another
  std::vector<uint32_t> middle_ends;

  bool is_literal(uint32_t id) const noexcept { return id < literal.size() && literal[id]; }
  void mark_literal(uint32_t id);
  /// Fills middle_bytes; the rest must be complete.
  void spell_middles();
};

}  // namespace lethe

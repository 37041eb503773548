#pragma once

#include <memory_resource>
#include <optional>
#include <string>

#include "runtime/batch/engine.hpp"
#include "runtime/batch/stop_matcher.hpp"
#include "runtime/tokenizer/stream_decoder.hpp"

namespace lethe {

/// The text of one choice while its tokens arrive: detokenized and searched for stop texts on the
/// reader's thread, not the step loop's.
class answer_text {
 public:
  struct rules {
    std::span<const uint32_t> marks = {};  // control tokens that are part of it; they outlive this
    bool skip_special = true;              // the others are not
    uint32_t min_tokens = 0;               // no stop text ends it before
  };
  /// Without a tokenizer the text stays empty.
  answer_text(const tokenizer* words, stop_matcher stops, std::pmr::memory_resource* memory,
              const rules& how);
  answer_text(const tokenizer* words, stop_matcher stops, std::pmr::memory_resource* memory)
      : answer_text(words, std::move(stops), memory, rules()) {}

  /// Reads what the choice has published since; appends what is certain to `text`.
  void read(const choice_state& from);
  /// A stop text was found; tokens after the one that completed it are not part of the answer.
  bool stopped() const { return stopped_; }
  uint32_t tokens() const { return tokens_; }
  const std::pmr::string& text() const { return text_; }

 private:
  void decode(uint32_t id);
  void push(std::string_view piece);

  const tokenizer* words_;
  rules how_;
  std::optional<stream_decoder> decoder_;
  stop_matcher stops_;
  std::pmr::string piece_, text_;
  uint32_t tokens_ = 0;
  bool stopped_ = false, flushed_ = false;
};

}  // namespace lethe

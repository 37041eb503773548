#include "runtime/serve/answer_text.hpp"

#include <algorithm>

namespace lethe {

answer_text::answer_text(const tokenizer* words, stop_matcher stops,
                         std::pmr::memory_resource* memory, const rules& how)
    : words_(words), how_(how), stops_(std::move(stops)), piece_(memory), text_(memory) {
  if (words) decoder_.emplace(*words, how.skip_special, memory);
}

void answer_text::read(const choice_state& from) {
  // The end is read before the count: whoever published the end had published every token.
  bool ended = from.reason.load(std::memory_order_acquire) != finish_reason::none;
  uint32_t published = from.published.load(std::memory_order_acquire);
  while (tokens_ < published && !stopped_) {
    piece_.clear();
    decode(from.ids[tokens_++]);
    push(piece_);
  }
  if (!ended || stopped_ || flushed_) return;
  flushed_ = true;
  piece_.clear();
  if (decoder_) decoder_->flush(piece_);
  push(piece_);
  text_.append(stops_.finish());
}

void answer_text::decode(uint32_t id) {
  if (!decoder_) return;
  bool mark = std::ranges::find(how_.marks, id) != how_.marks.end();
  if (!mark) return decoder_->push(id, piece_);
  decoder_->flush(piece_);
  piece_.append(words_->token_text(id));
}

void answer_text::push(std::string_view piece) {
  text_.append(stops_.feed(piece, tokens_ >= how_.min_tokens));
  stopped_ = stops_.stopped();
}

}  // namespace lethe

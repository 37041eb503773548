#include "runtime/serve/answer_text.hpp"

namespace lethe {

answer_text::answer_text(const tokenizer* words, stop_matcher stops,
                         std::pmr::memory_resource* memory)
    : stops_(std::move(stops)), piece_(memory), text_(memory) {
  if (words) decoder_.emplace(*words, true, memory);
}

void answer_text::read(const choice_state& from) {
  // The end is read before the count: whoever published the end had published every token.
  bool ended = from.reason.load(std::memory_order_acquire) != finish_reason::none;
  uint32_t published = from.published.load(std::memory_order_acquire);
  while (tokens_ < published && !stopped_) {
    piece_.clear();
    uint32_t id = from.ids[tokens_++];
    if (decoder_) decoder_->push(id, piece_);
    push(piece_);
  }
  if (!ended || stopped_ || flushed_) return;
  flushed_ = true;
  piece_.clear();
  if (decoder_) decoder_->flush(piece_);
  push(piece_);
  text_.append(stops_.finish());
}

void answer_text::push(std::string_view piece) {
  text_.append(stops_.feed(piece));
  stopped_ = stops_.stopped();
}

}  // namespace lethe

#pragma once

#include <string_view>

#include "runtime/grammar/lazy_states.hpp"
#include "runtime/grammar/token_trie.hpp"

namespace lethe {

/// How far the choices of one request have come in its grammar. They share tables of states and
/// masks, all taken from `memory` at the start; one thread at a time uses them.
class grammar_run {
 public:
  /// `vocab` may differ from the tokenizer's: a model's rows beyond it are never allowed.
  grammar_run(grammar g, const token_trie& words, uint32_t choices, uint32_t vocab,
              std::pmr::memory_resource* memory);
  grammar_run(const grammar_run&) = delete;

  /// Whether these bytes could follow: the definition of a mask's bit.
  bool can_follow(uint32_t choice, std::string_view bytes) {
    return !bytes.empty() && follow(choice, bytes) > lazy_states::dead;
  }
  /// Goes on behind these bytes; false, and nothing changes, if they can't follow.
  bool accept(uint32_t choice, std::string_view bytes) {
    id to = follow(choice, bytes);
    return to > lazy_states::dead && (at_[choice] = to, true);
  }
  bool accept_token(uint32_t choice, uint32_t id) {
    auto bytes = words_.bytes(id);
    return !bytes.empty() && accept(choice, bytes);
  }
  /// Whether what was said so far is whole.
  bool may_end(uint32_t choice) const { return states().may_end(at_[choice]); }
  /// Whether nothing but the end may follow.
  bool must_end(uint32_t choice) const { return states().must_end(at_[choice]); }
  /// One bit per id: the tokens that can follow, never control tokens. Nothing at all when that
  /// takes more than limits::grammar_mask_steps_max. Valid until the next call for this choice; the
  /// caller may set more bits.
  std::span<uint64_t> allowed(uint32_t choice);
  size_t mask_words() const { return mask_words_; }
  uint32_t vocab() const { return vocab_; }

 private:
  using id = lazy_states::id;
  lazy_states& states() { return tables_[now_]; }
  const lazy_states& states() const { return tables_[now_]; }
  id follow(uint32_t choice, std::string_view bytes);
  bool renew();
  bool walk(const token_trie::branch& tokens, uint32_t choice, std::span<uint64_t> mask);
  bool walk_again(uint32_t choice, uint32_t depth);
  bool fill(uint32_t choice, std::span<uint64_t> mask);
  void forget_masks();

  grammar grammar_;
  const token_trie& words_;
  uint32_t vocab_;
  size_t mask_words_;
  lazy_states tables_[2];
  uint32_t now_ = 0;
  std::pmr::vector<id> at_;            // by choice
  std::pmr::vector<id> path_;          // of a walk: behind each byte
  std::pmr::vector<uint8_t> spelled_;  // those bytes
  uint64_t budget_ = 0;

  struct kept_mask {
    id of = lazy_states::unknown;
    uint64_t used = 0;
  };
  std::pmr::vector<kept_mask> kept_;
  std::pmr::vector<uint64_t> masks_;   // of kept_
  std::pmr::vector<uint64_t> handed_;  // one for each choice
  std::pmr::vector<id> handed_of_;
  uint64_t uses_ = 0;
};

/// One choice of a run.
class grammar_state {
 public:
  grammar_state(grammar_run& run, uint32_t choice) : run_(&run), choice_(choice) {}
  bool accept(std::string_view bytes) { return run_->accept(choice_, bytes); }
  bool may_end() const { return run_->may_end(choice_); }
  bool must_end() const { return run_->must_end(choice_); }
  /// False: see grammar_run::allowed. `mask` has (vocab + 63) / 64 words.
  bool fill(std::span<uint64_t> mask);

 private:
  grammar_run* run_;
  uint32_t choice_;
};

}  // namespace lethe

#include "runtime/grammar/grammar_run.hpp"

#include <algorithm>

#include "runtime/base/check.hpp"
#include "runtime/base/limits.hpp"

namespace lethe {

namespace {

constexpr size_t kept_bytes = size_t{512} << 10;
constexpr uint64_t renewal_cost = 1 << 17;  // in steps: fixed tables are cleared and copied

size_t kept_masks(size_t words) {
  return std::clamp<size_t>(kept_bytes / (words * sizeof(uint64_t)), 4, 64);
}

}  // namespace

grammar_run::grammar_run(grammar g, const token_trie& words, uint32_t choices, uint32_t vocab,
                         std::pmr::memory_resource* memory)
    : grammar_(std::move(g)),
      words_(words),
      vocab_(vocab),
      mask_words_((size_t{vocab} + 63) / 64),
      tables_{{grammar_, memory}, {grammar_, memory}},
      at_(choices, lazy_states::dead, memory),
      path_(words.longest() + 1, lazy_states::dead, memory),
      spelled_(words.longest() + 1, 0, memory),
      kept_(kept_masks(mask_words_), kept_mask{}, memory),
      masks_(kept_.size() * mask_words_, 0, memory),
      handed_(choices * mask_words_, 0, memory),
      handed_of_(choices, lazy_states::unknown, memory) {
  budget_ = limits::grammar_mask_steps_max;
  std::ranges::fill(at_, states().begin(budget_));
}

void grammar_run::forget_masks() {
  std::ranges::fill(kept_, kept_mask{});
  std::ranges::fill(handed_of_, lazy_states::unknown);
}

/// Starts new tables with the choices' states only.
bool grammar_run::renew() {
  if (budget_ < renewal_cost) return false;
  budget_ -= renewal_cost;
  forget_masks();
  lazy_states& fresh = tables_[1 - now_];
  fresh.clear();
  for (id s : at_)
    if (fresh.copy_from(states(), s) == lazy_states::no_room) return false;
  for (id& s : at_) s = fresh.copy_from(states(), s);
  now_ = 1 - now_;
  return true;
}

/// The state behind these bytes; `dead` if there is none, or no room for it.
grammar_run::id grammar_run::follow(uint32_t choice, std::string_view bytes) {
  budget_ = limits::grammar_mask_steps_max;
  id at = at_[choice];
  for (size_t i = 0; i < bytes.size() && at != lazy_states::dead; ++i) {
    at = states().step(at, uint8_t(bytes[i]), budget_);
    if (at != lazy_states::no_room) continue;
    if (!renew()) return lazy_states::dead;
    at = at_[choice];
    for (size_t again = 0; again <= i && at != lazy_states::dead; ++again) {
      at = states().step(at, uint8_t(bytes[again]), budget_);
      if (at == lazy_states::no_room) return lazy_states::dead;
    }
  }
  return at;
}

/// The tables are full in the middle of a walk: new ones, and the way down to `depth` again.
bool grammar_run::walk_again(uint32_t choice, uint32_t depth) {
  if (!renew()) return false;
  path_[0] = at_[choice];
  for (uint32_t d = 0; d < depth; ++d) {
    path_[d + 1] = states().step(path_[d], spelled_[d], budget_);
    if (path_[d + 1] == lazy_states::no_room) return false;
  }
  return true;
}

bool grammar_run::walk(const token_trie::branch& tokens, uint32_t choice,
                       std::span<uint64_t> mask) {
  path_[0] = at_[choice];
  size_t visited = 0;
  for (size_t i = 0; i < tokens.nodes.size(); ++visited) {
    const auto& n = tokens.nodes[i];
    spelled_[n.depth - 1u] = n.byte;
    path_[n.depth] = states().step(path_[n.depth - 1u], n.byte, budget_);
    if (path_[n.depth] == lazy_states::no_room && !walk_again(choice, n.depth)) return false;
    if (path_[n.depth] == lazy_states::dead) {
      i = n.skip;
      continue;
    }
    for (uint32_t token : tokens.ids_at(i++))
      if (token < vocab_) mask[token / 64] |= uint64_t{1} << token % 64;
  }
  if (visited >= budget_) return false;
  budget_ -= visited;
  return true;
}

/// Tokens of plain characters need no walk where surely as many can follow as they have, or where
/// more than they have can't.
bool grammar_run::fill(uint32_t choice, std::span<uint64_t> mask) {
  budget_ = limits::grammar_mask_steps_max;
  std::ranges::fill(mask, 0);
  uint32_t run = states().run(at_[choice]), reach = states().reach(at_[choice]);
  if (run > 0) {
    auto plain = words_.plain_up_to(run);
    std::copy_n(plain.begin(), std::min(plain.size(), mask.size()), mask.begin());
    if (plain.size() >= mask.size() && vocab_ % 64 != 0)
      mask.back() &= (uint64_t{1} << vocab_ % 64) - 1;
  }
  if (run < reach && run < grammar::run_max && !walk(words_.plain(), choice, mask)) return false;
  return walk(words_.rest(), choice, mask);
}

std::span<uint64_t> grammar_run::allowed(uint32_t choice) {
  std::span mask(handed_.data() + choice * mask_words_, mask_words_);
  if (handed_of_[choice] == at_[choice]) return mask;
  handed_of_[choice] = lazy_states::unknown;
  auto known = std::ranges::find(kept_, at_[choice], &kept_mask::of);
  if (known == kept_.end()) {
    if (!fill(choice, mask)) return {};
    known = std::ranges::min_element(kept_, {}, &kept_mask::used);
    known->of = at_[choice];  // which may be another than before: tables may be new
    std::ranges::copy(mask, masks_.begin() + (known - kept_.begin()) * ptrdiff_t(mask_words_));
  } else {
    std::copy_n(masks_.begin() + (known - kept_.begin()) * ptrdiff_t(mask_words_), mask_words_,
                mask.begin());
  }
  known->used = ++uses_;
  handed_of_[choice] = at_[choice];
  return mask;
}

bool grammar_state::fill(std::span<uint64_t> mask) {
  auto from = run_->allowed(choice_);
  std::ranges::copy(from, mask.begin());
  return !from.empty();
}

}  // namespace lethe

#include "runtime/tokenizer/score_bpe.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

#include "runtime/base/utf8.hpp"
#include "runtime/tokenizer/bpe.hpp"

namespace lethe {
namespace {

constexpr uint32_t none = UINT32_MAX;
using scratch = score_bpe::scratch;

// Of two scores the higher has the lower number; 0 and -0 are one.
uint32_t place_of(float score) {
  auto bits = std::bit_cast<uint32_t>(score + 0.0f);
  return bits >> 31 ? bits : ~bits & 0x7FFFFFFF;
}

void seed(std::string_view text, scratch& s) {
  s.symbols.clear();
  for (size_t i = 0; i < text.size();) {
    auto at = uint32_t(s.symbols.size());
    uint32_t length = utf8::at(text, i).length;
    s.symbols.push_back({uint32_t(i), length, at - 1, at + 1});
    i += length;
  }
  if (!s.symbols.empty()) s.symbols.back().next = none;
}

neighbours neighbours_in(const vocabulary& v) {
  std::vector<std::pair<uint32_t, uint32_t>> pairs;
  for (uint32_t id = 0; id < v.size(); id++) {
    std::string_view text = v.text(id);
    for (size_t i = 0; i < text.size();) {
      auto s = utf8::at(text, i);
      i += s.length;
      if (i < text.size()) pairs.emplace_back(s.code, utf8::at(text, i).code);
    }
  }
  return neighbours(std::move(pairs));
}

}  // namespace

score_bpe::score_bpe(const vocabulary& v, std::vector<float> scores, std::optional<uint32_t> unk)
    : vocabulary_(&v),
      scores_(std::move(scores)),
      neighbours_(neighbours_in(v)),
      unk_(unk),
      byte_ids_(byte_token_ids(v)) {}

result<score_bpe> score_bpe::make(const vocabulary& v, std::vector<float> scores,
                                  std::optional<uint32_t> unk) {
  if (scores.size() != v.size()) return fail("{} scores for {} tokens", scores.size(), v.size());
  for (size_t id = 0; id < scores.size(); id++)
    if (std::isnan(scores[id])) return fail("the score of token {} is not a number", id);
  return score_bpe(v, std::move(scores), unk);
}

void score_bpe::offer(uint32_t left, std::string_view text, scratch& s) const {
  if (left == none || s.symbols[left].next == none) return;
  auto& a = s.symbols[left];
  uint32_t length = a.length + s.symbols[a.next].length;
  auto id = vocabulary_->word_of(text.substr(a.begin, length));
  if (!id) return;
  s.heap.push_back({uint64_t(place_of(scores_[*id])) << 32 | left, length});
  std::push_heap(s.heap.begin(), s.heap.end(), std::greater<>());
}

// A candidate is stale when its symbols together are no longer as long as they were.
void score_bpe::merge(std::string_view text, uint32_t begin, uint32_t end, scratch& s) const {
  s.heap.clear();
  for (uint32_t i = begin; i + 1 < end; i++) offer(i, text, s);
  while (!s.heap.empty()) {
    std::pop_heap(s.heap.begin(), s.heap.end(), std::greater<>());
    auto c = s.heap.back();
    s.heap.pop_back();
    auto& left = s.symbols[c.left()];
    if (left.length == 0 || left.next == none) continue;
    auto& right = s.symbols[left.next];
    if (left.length + right.length != c.length) continue;
    left.length = c.length;
    right.length = 0;
    left.next = right.next;
    if (left.next != none) s.symbols[left.next].prev = c.left();
    offer(left.prev, text, s);
    offer(c.left(), text, s);
  }
}

void score_bpe::write(std::string_view symbol, std::pmr::vector<uint32_t>& out) const {
  if (auto id = vocabulary_->word_of(symbol)) return out.push_back(*id);
  for (char b : symbol) {
    uint32_t id = byte_ids_[uint8_t(b)];
    if (id == none) id = vocabulary_->word_of({&b, 1}).value_or(unk_.value_or(none));
    if (id != none) out.push_back(id);
  }
}

void score_bpe::encode(std::string_view text, scratch& s, std::pmr::vector<uint32_t>& out) const {
  seed(text, s);
  auto count = uint32_t(s.symbols.size());
  auto code = [&](uint32_t i) { return utf8::at(text, s.symbols[i].begin).code; };
  for (uint32_t begin = 0, end; begin < count; begin = end) {
    end = begin + 1;
    while (end < count && neighbours_.may_join(code(end - 1), code(end))) end++;
    merge(text, begin, end, s);
  }
  for (uint32_t i = s.symbols.empty() ? none : 0; i != none; i = s.symbols[i].next)
    write(text.substr(s.symbols[i].begin, s.symbols[i].length), out);
}

}  // namespace lethe

#include "runtime/tokenizer/unigram.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/base/utf8.hpp"
#include "runtime/tokenizer/bpe.hpp"

namespace lethe {
namespace {

constexpr uint32_t none = UINT32_MAX;  // as a token: an unknown character
constexpr double unknown_penalty = 10;

byte_trie words_of(const vocabulary& v) {
  std::vector<byte_trie::entry> entries;
  entries.reserve(v.size());
  for (uint32_t id = 0; id < v.size(); id++)
    if (v.has(id) && !v.is_control(id)) entries.emplace_back(v.text(id), id);
  return byte_trie(std::move(entries));
}

}  // namespace

unigram::unigram(const vocabulary& v, std::vector<double> scores, std::optional<uint32_t> unk,
                 bool byte_fallback)
    : scores_(std::move(scores)),
      trie_(words_of(v)),
      unk_(unk),
      byte_fallback_(byte_fallback),
      byte_ids_(byte_token_ids(v)) {
  double lowest = 0;
  for (size_t i = 0; i < scores_.size(); i++)
    lowest = i ? std::min(lowest, scores_[i]) : scores_[i];
  unk_score_ = lowest - unknown_penalty;
  if (std::ranges::count(byte_ids_, none)) byte_fallback_ = false;
}

result<unigram> unigram::make(const vocabulary& v, std::vector<double> scores,
                              std::optional<uint32_t> unk, bool byte_fallback) {
  check(scores.size() == v.size());
  for (size_t id = 0; id < scores.size(); id++)
    if (!std::isfinite(scores[id])) return fail("the score of token {} is not finite", id);
  if (unk && !v.has(*unk)) return fail("unk_id {} is not in the vocabulary", *unk);
  unigram model(v, std::move(scores), unk, byte_fallback);
  if (!model.unk_ && !model.byte_fallback_)
    return fail("neither unk_id nor byte tokens: unknown characters have no token");
  return model;
}

// Viterbi, forwards over the bytes where a character starts.
void unigram::search(std::string_view word, scratch& s) const {
  s.best.assign(word.size() + 1, {0, none, none});
  auto arrive = [&](size_t from, size_t length, double score, uint32_t id) {
    auto& there = s.best[from + length];
    double sum = s.best[from].score + score;
    if (there.from == none || sum > there.score) there = {sum, uint32_t(from), id};
  };
  for (size_t at = 0; at < word.size();) {
    size_t character = utf8::at(word, at).length;
    bool alone = false;
    trie_.each_prefix(word.substr(at), [&](size_t length, uint32_t id) {
      arrive(at, length, scores_[id], id);
      alone |= length == character;
    });
    if (!alone) arrive(at, character, unk_score_, none);
    at += character;
  }
}

void unigram::write_unknown(std::string_view text, std::pmr::vector<uint32_t>& out) const {
  if (!byte_fallback_) return out.push_back(*unk_);
  for (char b : text) out.push_back(byte_ids_[uint8_t(b)]);
}

void unigram::encode(std::string_view word, scratch& s, std::pmr::vector<uint32_t>& out) const {
  search(word, s);
  s.path.clear();
  for (size_t end = word.size(); end > 0; end = s.best[end].from) s.path.push_back(uint32_t(end));
  size_t unknown_from = none;  // neighbouring unknown characters are one
  size_t begin = 0;
  for (auto it = s.path.rbegin(); it != s.path.rend(); begin = *it++) {
    uint32_t id = s.best[*it].id;
    bool unknown = id == none || id == unk_;
    if (unknown && unknown_from == none) unknown_from = begin;
    if (unknown) continue;
    if (unknown_from != none) write_unknown(word.substr(unknown_from, begin - unknown_from), out);
    unknown_from = none;
    out.push_back(id);
  }
  if (unknown_from != none) write_unknown(word.substr(unknown_from), out);
}

}  // namespace lethe

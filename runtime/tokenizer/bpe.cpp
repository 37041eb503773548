#include "runtime/tokenizer/bpe.hpp"

#include <algorithm>
#include <limits>

#include "runtime/tokenizer/utf8.hpp"

namespace lethe {
namespace {

constexpr uint32_t none = UINT32_MAX;
constexpr size_t affix_bytes_max = 64;
using scratch = bpe::scratch;

// The order of a heap whose front is the lowest rank, and of equal ranks the leftmost.
bool later(const scratch::candidate& a, const scratch::candidate& b) {
  return a.rank != b.rank ? a.rank > b.rank : a.left > b.left;
}

void add(uint32_t id, scratch& s) {
  auto at = uint32_t(s.symbols.size());
  s.symbols.push_back({id, at - 1, at + 1});  // the first has prev == none
}

}  // namespace

std::array<uint32_t, 256> byte_token_ids(const vocabulary& v) {
  std::array<uint32_t, 256> ids;
  for (uint32_t b = 0; b < 256; b++)
    ids[b] = v.word_of(fmt::format("<0x{:02X}>", b)).value_or(none);
  return ids;
}

bpe::bpe(const vocabulary& v, bpe_options options, size_t merges)
    : vocabulary_(&v), options_(std::move(options)), merges_(merges), byte_ids_(byte_token_ids(v)) {
  for (uint32_t c = 0; c < short_ids_.size(); c++) {
    std::string text;
    utf8::append(text, c);
    short_ids_[c] = v.word_of(text).value_or(none);
  }
}

result<bpe> bpe::make(const vocabulary& v, bpe_options options, std::span<const text_pair> merges) {
  if (std::max(options.continuing_prefix.size(), options.end_suffix.size()) > affix_bytes_max)
    return fail("a prefix or suffix of more than {} bytes", affix_bytes_max);
  bpe model(v, std::move(options), merges.size());
  std::string joined;
  for (uint32_t rank = 0; rank < merges.size(); rank++) {
    auto [left, right] = merges[rank];
    auto left_id = v.id_of(left), right_id = v.id_of(right);
    joined = left;
    const std::string& prefix = model.options_.continuing_prefix;
    joined += !prefix.empty() && right.starts_with(prefix) ? right.substr(prefix.size()) : right;
    auto id = v.id_of(joined);
    if (!left_id || !right_id || !id)
      return fail("merge {} names or makes a token that the vocabulary lacks", rank);
    if (!v.is_control(*id)) model.merges_.set(*left_id, *right_id, {rank, *id});
  }
  return model;
}

std::optional<uint32_t> bpe::character_id(std::string_view c, bool first, bool last) const {
  bool prefixed = !first && !options_.continuing_prefix.empty();
  bool suffixed = last && !options_.end_suffix.empty();
  if (!prefixed && !suffixed) {
    char32_t code = utf8::at(c, 0).code;
    if (code >= short_ids_.size()) return vocabulary_->word_of(c);
    return short_ids_[code] == none ? std::nullopt : std::optional(short_ids_[code]);
  }
  std::array<char, 4 + 2 * affix_bytes_max> text;  // no heap: this is part of a user's text
  auto end = text.begin();
  if (prefixed) end = std::ranges::copy(options_.continuing_prefix, end).out;
  end = std::ranges::copy(c, end).out;
  if (suffixed) end = std::ranges::copy(options_.end_suffix, end).out;
  return vocabulary_->word_of({text.begin(), end});
}

bool bpe::add_bytes(std::string_view c, scratch& s) const {
  if (!options_.byte_fallback) return false;
  for (char b : c)
    if (byte_ids_[uint8_t(b)] == none) return false;
  for (char b : c) add(byte_ids_[uint8_t(b)], s);
  return true;
}

// One symbol a character. An unknown one stays pending, as the next may fuse with it.
void bpe::seed(std::string_view word, scratch& s) const {
  s.symbols.clear();
  bool pending = false;
  for (size_t i = 0; i < word.size();) {
    size_t length = utf8::at(word, i).length;
    std::string_view c = word.substr(i, length);
    if (auto id = character_id(c, i == 0, i + length == word.size())) {
      if (pending) add(*options_.unk, s);
      pending = false;
      add(*id, s);
    } else if (!add_bytes(c, s) && options_.unk) {
      if (pending && !options_.fuse_unk) add(*options_.unk, s);
      pending = true;
    }
    i += length;
  }
  if (pending) add(*options_.unk, s);
  if (!s.symbols.empty()) s.symbols.back().next = none;
}

void bpe::offer(uint32_t left, scratch& s) const {
  if (left == none || s.symbols[left].next == none) return;
  uint32_t a = s.symbols[left].id, b = s.symbols[s.symbols[left].next].id;
  auto m = merges_.find(a, b);
  if (!m) return;
  s.heap.push_back({m.rank, left, a, b, m.joined});
  std::push_heap(s.heap.begin(), s.heap.end(), later);
}

// Joined symbols keep the left one's place. A candidate whose symbols changed is stale.
void bpe::merge(scratch& s) const {
  s.heap.clear();
  for (uint32_t i = 0; i + 1 < s.symbols.size(); i++) offer(i, s);
  while (!s.heap.empty()) {
    std::pop_heap(s.heap.begin(), s.heap.end(), later);
    auto c = s.heap.back();
    s.heap.pop_back();
    s.steps++;
    auto& left = s.symbols[c.left];
    if (left.id != c.left_id || left.next == none) continue;
    auto& right = s.symbols[left.next];
    if (right.id != c.right_id) continue;
    left.id = c.joined;
    right.id = none;
    left.next = right.next;
    if (left.next != none) s.symbols[left.next].prev = c.left;
    offer(left.prev, s);
    offer(c.left, s);
  }
}

void bpe::encode(std::string_view word, scratch& s, std::pmr::vector<uint32_t>& out) const {
  if (options_.ignore_merges) {
    if (auto id = vocabulary_->word_of(word)) return out.push_back(*id);
  }
  seed(word, s);
  merge(s);
  for (uint32_t i = s.symbols.empty() ? none : 0; i != none; i = s.symbols[i].next)
    out.push_back(s.symbols[i].id);
}

}  // namespace lethe

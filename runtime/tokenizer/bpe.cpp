#include "runtime/tokenizer/bpe.hpp"

#include <algorithm>
#include <functional>
#include <limits>

#include "runtime/base/utf8.hpp"

namespace lethe {
namespace {

constexpr uint32_t none = UINT32_MAX;
constexpr size_t affix_bytes_max = 64;
constexpr uint32_t few = 24;  // so many symbols are joined faster without a heap
constexpr uint64_t never = UINT64_MAX;
using scratch = bpe::scratch;

void add(uint32_t id, size_t begin, scratch& s) {
  auto at = uint32_t(s.symbols.size());
  s.symbols.push_back({id, at - 1, at + 1, uint32_t(begin)});  // the first has prev == none
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
  know_characters();
}

// Beyond the basic plane few characters are tokens of their own.
void bpe::know_characters() {
  character_ids_.assign(0x10000, none);
  for (uint32_t id = 0; id < vocabulary_->size(); id++) {
    std::string_view text = vocabulary_->text(id);
    if (text.empty() || text.size() > 3) continue;
    auto c = utf8::at(text, 0);
    if (c.state == utf8::sequence_state::whole && c.length == text.size())
      character_ids_[c.code] = vocabulary_->word_of(text).value_or(none);
  }
}

// By trying each. Not all are: the merges of some tokens' texts take another way.
void bpe::know_words() {
  scratch s(std::pmr::get_default_resource());
  std::pmr::vector<uint32_t> ids;
  word_table words(vocabulary_->size());
  for (uint32_t id = 0; id < vocabulary_->size(); id++) {
    std::string_view text = vocabulary_->text(id);
    if (!word_table::takes(text) || vocabulary_->word_of(text) != id) continue;
    ids.clear();
    encode_by_merges(text, s, ids);
    if (ids.size() == 1 && ids[0] == id) words.set(text, id);
  }
  words_ = std::move(words);
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
  model.neighbours_ = model.neighbours_in(merges);
  model.know_words();
  return model;
}

// What a merge joins are two texts, so at its seam stand a last and a first character. That holds
// only while texts are made of characters, not of byte tokens or with something put around them.
neighbours bpe::neighbours_in(std::span<const text_pair> merges) const {
  if (!options_.continuing_prefix.empty() || !options_.end_suffix.empty()) return {};
  auto whole = [this](uint32_t id) {
    return id == options_.unk || std::ranges::find(byte_ids_, id) != byte_ids_.end();
  };
  std::vector<std::pair<uint32_t, uint32_t>> pairs;
  for (auto [left, right] : merges) {
    if (left.empty() || right.empty()) return {};
    if (left.size() == 6 || right.size() == 6 || options_.unk)
      if (whole(*vocabulary_->id_of(left)) || whole(*vocabulary_->id_of(right))) return {};
    size_t last = left.size() - 1;
    while (last > 0 && (uint8_t(left[last]) & 0xC0) == 0x80) last--;
    auto a = character_id(left.substr(last), true, false);
    auto b = character_id(right.substr(0, utf8::at(right, 0).length), true, false);
    if (a && b) pairs.emplace_back(*a, *b);
  }
  return neighbours(std::move(pairs));
}

std::optional<uint32_t> bpe::character_id(std::string_view c, bool first, bool last) const {
  bool prefixed = !first && !options_.continuing_prefix.empty();
  bool suffixed = last && !options_.end_suffix.empty();
  if (!prefixed && !suffixed) {
    char32_t code = utf8::at(c, 0).code;
    if (code >= character_ids_.size()) return vocabulary_->word_of(c);
    return character_ids_[code] == none ? std::nullopt : std::optional(character_ids_[code]);
  }
  std::array<char, 4 + 2 * affix_bytes_max> text;  // no heap: this is part of a user's text
  auto end = text.begin();
  if (prefixed) end = std::ranges::copy(options_.continuing_prefix, end).out;
  end = std::ranges::copy(c, end).out;
  if (suffixed) end = std::ranges::copy(options_.end_suffix, end).out;
  return vocabulary_->word_of({text.begin(), end});
}

bool bpe::add_bytes(std::string_view c, size_t begin, scratch& s) const {
  if (!options_.byte_fallback) return false;
  for (char b : c)
    if (byte_ids_[uint8_t(b)] == none) return false;
  for (char b : c) add(byte_ids_[uint8_t(b)], begin, s);
  return true;
}

// One symbol a character. An unknown one stays pending, as the next may fuse with it.
void bpe::seed(std::string_view word, scratch& s) const {
  s.symbols.clear();
  bool pending = false;
  size_t unknown = 0;  // where the pending one begins
  for (size_t i = 0; i < word.size();) {
    size_t length = utf8::at(word, i).length;
    std::string_view c = word.substr(i, length);
    if (auto id = character_id(c, i == 0, i + length == word.size())) {
      if (pending) add(*options_.unk, unknown, s);
      pending = false;
      add(*id, i, s);
    } else if (!add_bytes(c, i, s) && options_.unk) {
      if (pending && !options_.fuse_unk) add(*options_.unk, unknown, s);
      if (!pending || !options_.fuse_unk) unknown = i;
      pending = true;
    }
    i += length;
  }
  if (pending) add(*options_.unk, unknown, s);
  if (!s.symbols.empty()) s.symbols.back().next = none;
}

merge_table::merge bpe::at(uint32_t left, const scratch& s) const {
  if (left == none || s.symbols[left].next == none) return {};
  return merges_.find(s.symbols[left].id, s.symbols[s.symbols[left].next].id);
}

void bpe::offer(uint32_t left, scratch& s) const {
  auto m = at(left, s);
  if (!m) return;
  s.heap.push_back(uint64_t(m.rank) << 32 | left);
  std::push_heap(s.heap.begin(), s.heap.end(), std::greater<>());
}

// Joined symbols keep the left one's place. Whoever's pair now has another rank is stale.
void bpe::merge(uint32_t begin, uint32_t end, scratch& s) const {
  s.heap.clear();
  for (uint32_t i = begin; i + 1 < end; i++)
    if (auto m = at(i, s)) s.heap.push_back(uint64_t(m.rank) << 32 | i);
  std::make_heap(s.heap.begin(), s.heap.end(), std::greater<>());
  while (!s.heap.empty()) {
    std::pop_heap(s.heap.begin(), s.heap.end(), std::greater<>());
    uint64_t next = s.heap.back();
    s.heap.pop_back();
    s.steps++;
    auto place = uint32_t(next);
    auto m = at(place, s);
    if (m.rank != next >> 32) continue;
    auto& left = s.symbols[place];
    auto& right = s.symbols[left.next];
    left.id = m.joined;
    left.next = right.next;
    right = {none, none, none};
    if (left.next != none) s.symbols[left.next].prev = place;
    offer(left.prev, s);
    offer(place, s);
  }
}

uint64_t bpe::joining(uint32_t left, uint32_t right) const {
  auto m = merges_.find(left, right);
  return m ? uint64_t(m.rank) << 32 | m.joined : never;
}

// The heap's room holds what joins each symbol with the next one; joined ones move up.
void bpe::write_few(uint32_t begin, uint32_t end, scratch& s,
                    std::pmr::vector<uint32_t>& out) const {
  auto* symbols = s.symbols.data() + begin;
  uint32_t count = end - begin;
  s.heap.assign(count, never);
  auto* next = s.heap.data();
  for (uint32_t i = 0; i + 1 < count; i++) next[i] = joining(symbols[i].id, symbols[i + 1].id);
  while (true) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < count; i++) best = next[i] < next[best] ? i : best;
    if (next[best] == never) break;
    s.steps++;
    symbols[best].id = uint32_t(next[best]);
    count--;
    for (uint32_t i = best + 1; i < count; i++) symbols[i].id = symbols[i + 1].id;
    for (uint32_t i = best + 1; i < count; i++) next[i] = next[i + 1];
    next[best] = best + 1 < count ? joining(symbols[best].id, symbols[best + 1].id) : never;
    if (best > 0) next[best - 1] = joining(symbols[best - 1].id, symbols[best].id);
  }
  for (uint32_t i = 0; i < count; i++) out.push_back(symbols[i].id);
}

/// What the symbols [begin, end) become, which nothing outside can join.
void bpe::write(uint32_t begin, uint32_t end, scratch& s, std::pmr::vector<uint32_t>& out) const {
  if (end - begin <= few) return write_few(begin, end, s, out);
  merge(begin, end, s);
  for (uint32_t i = begin; i < end; i = s.symbols[i].next) out.push_back(s.symbols[i].id);
}

void bpe::encode(std::string_view word, scratch& s, std::pmr::vector<uint32_t>& out) const {
  if (uint32_t id = words_.find(word); id != none) return out.push_back(id);
  if (options_.ignore_merges) {
    if (auto id = vocabulary_->word_of(word)) return out.push_back(*id);
  }
  encode_by_merges(word, s, out);
}

void bpe::encode_by_merges(std::string_view word, scratch& s,
                           std::pmr::vector<uint32_t>& out) const {
  seed(word, s);
  auto count = uint32_t(s.symbols.size());
  for (uint32_t begin = 0, end; begin < count; begin = end) {
    end = begin + 1;
    while (end < count && neighbours_.may_join(s.symbols[end - 1].id, s.symbols[end].id)) end++;
    uint32_t from = s.symbols[begin].begin;
    uint32_t to = end < count ? s.symbols[end].begin : uint32_t(word.size());
    uint32_t whole = end - begin > 1 ? words_.find(word.substr(from, to - from)) : none;
    whole == none ? write(begin, end, s, out) : out.push_back(whole);
  }
}

}  // namespace lethe

#include "runtime/tokenizer/bpe.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>

#include "runtime/base/limits.hpp"
#include "runtime/base/utf8.hpp"

namespace lethe {
namespace {

constexpr uint32_t none = UINT32_MAX;
constexpr size_t affix_bytes_max = 64;
constexpr uint32_t few = 24;  // so many symbols are joined faster without a heap
constexpr uint32_t window_min = 512,
                   twice = 8;  // an eighth of a window is merged again by the next
constexpr int other_bits = 17;
constexpr uint32_t never = merge_table::never;
static_assert(limits::vocab_max - 1 <= merge_table::id_max);
using scratch = bpe::scratch;

void add(uint32_t id, size_t begin, scratch& s) { s.seeds.push_back({id, uint32_t(begin)}); }

/// Of one or two bytes, or none: most that byte-level words are made of.
std::pair<uint32_t, uint32_t> short_character(std::string_view text, size_t i) {
  auto first = uint8_t(text[i]);
  if (first < 0x80) return {first, 1};
  if (first < 0xC2 || first >= 0xE0 || i + 1 == text.size()) return {0, 0};
  auto second = uint8_t(text[i + 1]);
  if ((second & 0xC0) != 0x80) return {0, 0};
  return {(first & 0x1Fu) << 6 | (second & 0x3Fu), 2};
}

/// Which bit of `others_`. Sixteen thousand bytes: few words share a bit with a token that isn't
/// among `words_`.
size_t other(std::string_view word) noexcept {
  uint64_t first = 0;
  std::memcpy(&first, word.data(), std::min(word.size(), sizeof first));
  return (first + word.size()) * 0x9E3779B97F4A7C15 >> (64 - other_bits);
}

/// As std::pop_heap does, but which of two children is less is no branch: nobody can foresee it.
void take_least(std::pmr::vector<uint64_t>& heap) {
  uint64_t last = heap.back();
  heap.pop_back();
  auto* h = heap.data();
  size_t count = heap.size(), hole = 0, child = 1;
  if (count == 0) return;
  for (; child + 1 < count; child = 2 * hole + 1) {
    child += h[child + 1] < h[child];
    h[hole] = h[child];
    hole = child;
  }
  if (child < count) h[hole] = h[child], hole = child;
  for (; hole > 0 && last < h[(hole - 1) / 2]; hole = (hole - 1) / 2) h[hole] = h[(hole - 1) / 2];
  h[hole] = last;
}

}  // namespace

std::array<uint32_t, 256> byte_token_ids(const vocabulary& v) {
  std::array<uint32_t, 256> ids;
  for (uint32_t b = 0; b < 256; b++)
    ids[b] = v.word_of(fmt::format("<0x{:02X}>", b)).value_or(none);
  return ids;
}

bpe::bpe(const vocabulary& v, bpe_options options, size_t merges)
    : vocabulary_(&v), options_(std::move(options)), joined_(merges), byte_ids_(byte_token_ids(v)) {
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
  others_.assign(size_t{1} << other_bits, false);
  for (uint32_t id = 0; id < vocabulary_->size(); id++) {
    std::string_view text = vocabulary_->text(id);
    if (vocabulary_->word_of(text) != id) continue;
    ids.clear();
    if (word_table::takes(text)) encode_by_merges(text, s, ids);
    if (ids.size() == 1 && ids[0] == id)
      words.set(text, id);
    else
      others_[other(text)] = true;
  }
  words_ = std::move(words);
}

result<bpe> bpe::make(const vocabulary& v, bpe_options options, std::span<const text_pair> merges) {
  if (std::max(options.continuing_prefix.size(), options.end_suffix.size()) > affix_bytes_max)
    return fail("a prefix or suffix of more than {} bytes", affix_bytes_max);
  if (merges.size() >= never) return fail("{} merges, of {} at most", merges.size(), never - 1);
  bpe model(v, std::move(options), merges.size());
  std::string joined;
  std::vector<merge_table::merge> pairs;
  for (uint32_t rank = 0; rank < merges.size(); rank++) {
    auto [left, right] = merges[rank];
    auto left_id = v.id_of(left), right_id = v.id_of(right);
    joined = left;
    const std::string& prefix = model.options_.continuing_prefix;
    joined += !prefix.empty() && right.starts_with(prefix) ? right.substr(prefix.size()) : right;
    auto id = v.id_of(joined);
    if (!left_id || !right_id || !id)
      return fail("merge {} names or makes a token that the vocabulary lacks", rank);
    model.joined_[rank] = *id;
    if (!v.is_control(*id)) pairs.push_back({*left_id, *right_id, rank});
  }
  model.merges_ = merge_table(pairs);
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
  s.seeds.clear();
  s.seeds.reserve(word.size());
  bool pending = false;
  size_t unknown = 0;  // where the pending one begins
  const bool plain = options_.continuing_prefix.empty() && options_.end_suffix.empty();
  for (size_t i = 0; i < word.size();) {
    if (auto [code, bytes] = short_character(word, i); plain && bytes > 0 && !pending)
      if (uint32_t id = character_ids_[code]; id != none) {
        add(id, i, s);
        i += bytes;
        continue;
      }
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
}

/// What joins the symbol at `left` with the next one.
void bpe::offer(uint32_t left, scratch& s) const {
  auto& l = s.symbols[left];
  l.rank = l.next == none ? never : merges_.rank(l.id, s.symbols[l.next].id);
  if (l.rank == never) return;
  __builtin_prefetch(&joined_[l.rank]);
  s.heap.push_back(uint64_t(l.rank) << 32 | left);
  std::push_heap(s.heap.begin(), s.heap.end(), std::greater<>());
}

// The symbols are those that the seeds [begin, end) become. Joined ones keep the left one's place.
// What the heap has of a symbol whose next merge is another by now is stale.
void bpe::merge(uint32_t begin, uint32_t end, scratch& s) const {
  uint32_t count = end - begin;
  const auto* seeds = s.seeds.data() + begin;
  s.symbols.resize(count);
  s.heap.clear();
  for (uint32_t i = 0; i + 1 < count; i++) {
    uint32_t rank = merges_.rank(seeds[i].id, seeds[i + 1].id);
    s.symbols[i] = {seeds[i].id, i - 1, i + 1, rank};  // the first has prev == none
    if (rank != never) s.heap.push_back(uint64_t(rank) << 32 | i);
  }
  s.symbols[count - 1] = {seeds[count - 1].id, count - 2, none, never};
  std::make_heap(s.heap.begin(), s.heap.end(), std::greater<>());
  while (!s.heap.empty()) {
    uint64_t next = s.heap.front();
    take_least(s.heap);
    s.steps++;
    auto place = uint32_t(next), rank = uint32_t(next >> 32);
    auto& left = s.symbols[place];
    if (left.rank != rank) continue;
    auto& right = s.symbols[left.next];
    left.id = joined_[rank];
    left.next = right.next;
    right.rank = never;
    if (left.next != none) s.symbols[left.next].prev = place;
    if (left.prev != none) offer(left.prev, s);
    offer(place, s);
  }
}

// The heap's room holds what joins each symbol with the next one; joined ones move up.
void bpe::write_few(uint32_t begin, uint32_t end, scratch& s,
                    std::pmr::vector<uint32_t>& out) const {
  auto* symbols = s.seeds.data() + begin;
  uint32_t count = end - begin;
  s.heap.assign(count, never);
  auto* next = s.heap.data();
  for (uint32_t i = 0; i + 1 < count; i++) next[i] = merges_.rank(symbols[i].id, symbols[i + 1].id);
  while (true) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < count; i++) best = next[i] < next[best] ? i : best;
    if (next[best] == never) break;
    s.steps++;
    symbols[best].id = joined_[next[best]];
    count--;
    for (uint32_t i = best + 1; i < count; i++) symbols[i].id = symbols[i + 1].id;
    for (uint32_t i = best + 1; i < count; i++) next[i] = next[i + 1];
    next[best] = best + 1 < count ? merges_.rank(symbols[best].id, symbols[best + 1].id) : never;
    if (best > 0) next[best - 1] = merges_.rank(symbols[best - 1].id, symbols[best].id);
  }
  for (uint32_t i = 0; i < count; i++) out.push_back(symbols[i].id);
}

// Tokens are what merges make of a text if, and only if, each two neighbours are what merges make
// of theirs: whatever else is joined, and when, changes no order within the two. So windows that
// agree on a token where they overlap give what merging all at once gives, and stay in the cache.
bool bpe::write_by(uint32_t window, uint32_t begin, uint32_t end, scratch& s,
                   std::pmr::vector<uint32_t>& out) const {
  uint32_t agreed = none, length = 0;
  while (true) {
    uint32_t count = std::min(window, end - begin), i = 0;
    merge(begin, begin + count, s);
    const auto& first = s.symbols[0];
    if (agreed != none && (first.id != agreed || first.next != length)) return false;
    bool last = begin + count == end;
    for (; i != none && (last || i < count - count / twice); i = s.symbols[i].next)
      out.push_back(s.symbols[i].id);
    if (last) return true;
    if (i == none) return false;
    agreed = s.symbols[i].id, length = s.symbols[i].next - i;
    begin += i;
  }
}

/// What the seeds [begin, end) become, which nothing outside can join.
void bpe::write(uint32_t begin, uint32_t end, scratch& s, std::pmr::vector<uint32_t>& out) const {
  if (end - begin <= few) return write_few(begin, end, s, out);
  size_t written = out.size();
  for (uint32_t window = s.window; !write_by(window, begin, end, s, out); window *= 2)
    out.resize(written);
}

void bpe::encode(std::string_view word, scratch& s, std::pmr::vector<uint32_t>& out) const {
  if (uint32_t id = words_.find(word); id != none) return out.push_back(id);
  if (options_.ignore_merges && others_[other(word)]) {
    if (auto id = vocabulary_->word_of(word)) return out.push_back(*id);
  }
  encode_by_merges(word, s, out);
}

void bpe::encode_by_merges(std::string_view word, scratch& s,
                           std::pmr::vector<uint32_t>& out) const {
  seed(word, s);
  auto count = uint32_t(s.seeds.size());
  for (uint32_t begin = 0, end; begin < count; begin = end) {
    end = begin + 1;
    while (end < count && neighbours_.may_join(s.seeds[end - 1].id, s.seeds[end].id)) end++;
    uint32_t from = s.seeds[begin].begin;
    uint32_t to = end < count ? s.seeds[end].begin : uint32_t(word.size());
    uint32_t whole = end - begin > 1 ? words_.find(word.substr(from, to - from)) : none;
    whole == none ? write(begin, end, s, out) : out.push_back(whole);
  }
}

}  // namespace lethe

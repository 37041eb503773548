#include "runtime/tokenizer/byte_trie.hpp"

#include <algorithm>

namespace lethe {
namespace {

std::vector<byte_trie::entry> sorted_unique(std::vector<byte_trie::entry> entries) {
  std::erase_if(entries, [](auto& e) { return e.first.empty(); });
  auto by_key = [](auto& a, auto& b) { return a.first < b.first; };
  std::stable_sort(entries.begin(), entries.end(), by_key);
  size_t kept = 0;
  for (size_t i = 0; i < entries.size(); i++)
    if (i + 1 == entries.size() || entries[i].first != entries[i + 1].first)
      entries[kept++] = entries[i];
  entries.resize(kept);
  return entries;
}

// The keys below a node: they share their first `depth` bytes.
struct key_range {
  uint32_t begin, end, depth;
};

}  // namespace

// Breadth first, so that the children of a node lie side by side, sorted by label.
byte_trie::byte_trie(std::vector<entry> entries) : nodes_(1) {
  auto keys = sorted_unique(std::move(entries));
  std::vector<key_range> below = {{0, uint32_t(keys.size()), 0}};
  for (uint32_t at = 0; at < nodes_.size(); at++) {
    auto [begin, end, depth] = below[at];
    nodes_[at].first_child = uint32_t(nodes_.size());
    if (begin < end && keys[begin].first.size() == depth) nodes_[at].value = keys[begin++].second;
    while (begin < end) {
      char label = keys[begin].first[depth];
      uint32_t next = begin;
      while (next < end && keys[next].first[depth] == label) next++;
      nodes_[at].children++;
      nodes_.push_back({.label = uint8_t(label)});
      below.push_back({begin, next, depth + 1});
      begin = next;
    }
  }
  first_.fill(nothing);
  for (uint32_t i = 0; i < nodes_[0].children; i++) first_[nodes_[1 + i].label] = 1 + i;
}

uint32_t byte_trie::child(uint32_t at, uint8_t label) const noexcept {
  if (at == 0) return first_[label];
  auto begin = nodes_.begin() + nodes_[at].first_child, end = begin + nodes_[at].children;
  auto it = std::lower_bound(begin, end, label, [](auto& n, uint8_t l) { return n.label < l; });
  return it != end && it->label == label ? uint32_t(it - nodes_.begin()) : nothing;
}

}  // namespace lethe

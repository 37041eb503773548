#include "runtime/log/merkle.hpp"

#include <bit>

#include "runtime/base/check.hpp"

namespace lethe {

namespace {

constexpr std::byte leaf_mark[] = {std::byte{0}}, node_mark[] = {std::byte{1}};

/// Right to left: the smallest subtree is the deepest.
hash32 fold(std::span<const hash32> subtrees) {
  if (subtrees.empty()) return sha256({});
  hash32 root = subtrees.back();
  for (size_t i = subtrees.size() - 1; i-- > 0;) root = node_hash(subtrees[i], root);
  return root;
}

/// The largest whole subtrees of [begin, end), where `begin` is a multiple of the largest.
result<std::vector<hash32>> cut(uint64_t begin, uint64_t end, const subtree_source& source) {
  std::vector<hash32> parts;
  while (begin < end) {
    const uint32_t level = uint32_t(std::bit_width(end - begin)) - 1;
    auto hash = source(level, begin >> level);
    if (!hash) return hash.why();
    parts.push_back(*hash);
    begin += uint64_t{1} << level;
  }
  return parts;
}

result<void> append_range(merkle_proof& proof, uint64_t begin, uint64_t end,
                          const subtree_source& source) {
  auto parts = cut(begin, end, source);
  if (!parts) return parts.why();
  proof.push_back(fold(*parts));
  return {};
}

/// The largest power of two below n, which is at least 2.
uint64_t split(uint64_t n) { return std::bit_floor(n - 1); }

struct leaf_span {
  uint64_t begin, end;
};

/// Paths are found top down; proofs go bottom up.
result<merkle_proof> proof_of(std::span<const leaf_span> bottom_up, const subtree_source& source) {
  merkle_proof proof;
  for (const leaf_span& r : bottom_up)
    if (auto ok = append_range(proof, r.begin, r.end, source); !ok) return ok.why();
  return proof;
}

/// The sibling of the half of [begin, end) that holds `at`, which half it then becomes.
leaf_span step_down(uint64_t& begin, uint64_t& end, bool left) {
  const uint64_t middle = begin + split(end - begin);
  const leaf_span sibling = left ? leaf_span{middle, end} : leaf_span{begin, middle};
  (left ? end : begin) = middle;
  return sibling;
}

}  // namespace

hash32 leaf_hash(bytes_view data) { return sha256({leaf_mark, data}); }

hash32 node_hash(const hash32& left, const hash32& right) {
  return sha256({node_mark, left, right});
}

result<merkle_frontier> merkle_frontier::from(uint64_t size, std::vector<hash32> subtrees) {
  if (subtrees.size() != size_t(std::popcount(size)))
    return fail("tree: {} subtrees; a tree of {} leaves has {}", subtrees.size(), size,
                std::popcount(size));
  merkle_frontier made;
  made.size_ = size;
  made.subtrees_ = std::move(subtrees);
  return made;
}

result<merkle_frontier> merkle_frontier::from(uint64_t size, const subtree_source& source) {
  auto subtrees = cut(0, size, source);
  if (!subtrees) return subtrees.why();
  return from(size, *std::move(subtrees));
}

void merkle_frontier::append(const hash32& leaf) {
  hash32 hash = leaf;
  for (uint64_t ones = size_; ones & 1; ones >>= 1) {
    hash = node_hash(subtrees_.back(), hash);
    subtrees_.pop_back();
  }
  subtrees_.push_back(hash);
  ++size_;
}

hash32 merkle_frontier::root() const { return fold(subtrees_); }

void merkle_tree::append(const hash32& leaf) {
  hash32 hash = leaf;
  for (size_t level = 0;; ++level) {
    if (level == levels_.size()) levels_.emplace_back();
    auto& hashes = levels_[level];
    hashes.push_back(hash);
    if (hashes.size() % 2 != 0) return;
    hash = node_hash(hashes[hashes.size() - 2], hash);
  }
}

hash32 merkle_tree::root(uint64_t size) const {
  check(size <= this->size());
  return fold(*cut(0, size, source()));
}

const std::vector<hash32>& merkle_tree::level(uint32_t level) const {
  static const std::vector<hash32> none;
  return level < levels_.size() ? levels_[level] : none;
}

subtree_source merkle_tree::source() const {
  return [this](uint32_t level, uint64_t index) -> result<hash32> {
    check(index < this->level(level).size());
    return this->level(level)[size_t(index)];
  };
}

/// PATH of RFC 9162, 2.1.3.1.
result<merkle_proof> inclusion_proof(uint64_t index, uint64_t size, const subtree_source& source) {
  check(index < size);
  std::vector<leaf_span> path;
  for (uint64_t begin = 0, end = size; end - begin > 1;)
    path.push_back(step_down(begin, end, index < begin + split(end - begin)));
  return proof_of(std::vector<leaf_span>(path.rbegin(), path.rend()), source);
}

/// SUBPROOF of RFC 9162, 2.1.4.1.
result<merkle_proof> consistency_proof(uint64_t old_size, uint64_t size,
                                       const subtree_source& source) {
  check(old_size <= size);
  if (old_size == 0 || old_size == size) return merkle_proof{};
  std::vector<leaf_span> path;
  uint64_t begin = 0, end = size;
  while (end != old_size)
    path.push_back(step_down(begin, end, old_size <= begin + split(end - begin)));
  if (begin != 0) path.push_back({begin, end});
  return proof_of(std::vector<leaf_span>(path.rbegin(), path.rend()), source);
}

/// RFC 9162, 2.1.3.2.
bool verify_inclusion(const hash32& leaf, uint64_t index, uint64_t size,
                      std::span<const hash32> proof, const hash32& root) {
  if (index >= size) return false;
  uint64_t fn = index, sn = size - 1;
  hash32 hash = leaf;
  for (const hash32& sibling : proof) {
    if (sn == 0) return false;
    if (fn % 2 == 1 || fn == sn) {
      hash = node_hash(sibling, hash);
      while (fn % 2 == 0 && fn != 0) fn >>= 1, sn >>= 1;
    } else {
      hash = node_hash(hash, sibling);
    }
    fn >>= 1;
    sn >>= 1;
  }
  return sn == 0 && hash == root;
}

/// RFC 9162, 2.1.4.2.
std::optional<proven_roots> roots_of_consistency(uint64_t old_size, uint64_t size,
                                                 std::span<const hash32> proof,
                                                 const hash32& old_root) {
  if (old_size == 0 || old_size >= size) return {};
  uint64_t fn = old_size - 1, sn = size - 1;
  while (fn % 2 == 1) fn >>= 1, sn >>= 1;
  proven_roots roots{old_root, old_root};
  if (fn != 0) {  // else the old tree is itself a subtree of the new one
    if (proof.empty()) return {};
    roots = {proof[0], proof[0]};
    proof = proof.subspan(1);
  }
  for (const hash32& hash : proof) {
    if (sn == 0) return {};
    if (fn % 2 == 1 || fn == sn) {
      roots.old_root = node_hash(hash, roots.old_root);
      roots.root = node_hash(hash, roots.root);
      while (fn % 2 == 0 && fn != 0) fn >>= 1, sn >>= 1;
    } else {
      roots.root = node_hash(roots.root, hash);
    }
    fn >>= 1;
    sn >>= 1;
  }
  if (sn != 0) return {};
  return roots;
}

bool verify_consistency(uint64_t old_size, uint64_t size, std::span<const hash32> proof,
                        const hash32& old_root, const hash32& root) {
  if (old_size != 0 && old_size == size) return proof.empty() && old_root == root;
  auto roots = roots_of_consistency(old_size, size, proof, old_root);
  return roots && roots->old_root == old_root && roots->root == root;
}

}  // namespace lethe

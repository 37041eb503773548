#pragma once

#include <functional>
#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/crypto/sha256.hpp"

/// Merkle trees of RFC 9162, section 2.1, with SHA-256.
namespace lethe {

hash32 leaf_hash(bytes_view data);
hash32 node_hash(const hash32& left, const hash32& right);

using merkle_proof = std::vector<hash32>;

/// The hash of the whole subtree of 2^level leaves from leaf index << level on.
using subtree_source = std::function<result<hash32>(uint32_t level, uint64_t index)>;

/// A tree that grows, of which only the largest whole subtrees are kept, left to right: as many as
/// the size has one bits.
class merkle_frontier {
 public:
  merkle_frontier() = default;
  static result<merkle_frontier> from(uint64_t size, std::vector<hash32> subtrees);
  static result<merkle_frontier> from(uint64_t size, const subtree_source& source);

  void append(const hash32& leaf);
  uint64_t size() const noexcept { return size_; }
  const std::vector<hash32>& subtrees() const noexcept { return subtrees_; }
  hash32 root() const;

 private:
  uint64_t size_ = 0;
  std::vector<hash32> subtrees_;
};

/// Every whole subtree of a tree that grows: what proofs and tiles are made of.
class merkle_tree {
 public:
  void append(const hash32& leaf);
  uint64_t size() const noexcept { return levels_.empty() ? 0 : levels_[0].size(); }
  hash32 root() const { return root(size()); }
  /// Of the first `size` leaves.
  hash32 root(uint64_t size) const;
  /// The whole subtrees of that level.
  const std::vector<hash32>& level(uint32_t level) const;
  subtree_source source() const;

 private:
  std::vector<std::vector<hash32>> levels_;
};

/// `index` < `size`. Fails only if the source does.
result<merkle_proof> inclusion_proof(uint64_t index, uint64_t size, const subtree_source& source);
/// `old_size` <= `size`.
result<merkle_proof> consistency_proof(uint64_t old_size, uint64_t size,
                                       const subtree_source& source);

bool verify_inclusion(const hash32& leaf, uint64_t index, uint64_t size,
                      std::span<const hash32> proof, const hash32& root);
/// Says nothing of an old size of 0, which every tree extends: false.
bool verify_consistency(uint64_t old_size, uint64_t size, std::span<const hash32> proof,
                        const hash32& old_root, const hash32& root);

/// What a proof says of both roots; equal to both if it is right. Nothing if it has a wrong length.
struct proven_roots {
  hash32 old_root, root;
};
std::optional<proven_roots> roots_of_consistency(uint64_t old_size, uint64_t size,
                                                 std::span<const hash32> proof,
                                                 const hash32& old_root);

}  // namespace lethe

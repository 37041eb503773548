#include "runtime/log/merkle.hpp"

#include <bit>

#include "tests/unit/log_samples.hpp"

namespace lethe {
namespace {

using namespace test;
using simdjson::dom::element;

hash32 hash_of(std::string_view hex) {
  hash32 h{};
  const bytes b = from_hex(hex);
  EXPECT_EQ(b.size(), h.size());
  std::ranges::copy(b, h.begin());
  return h;
}

/// Whatever lengths the vectors have; a hash of a wrong length is no hash.
std::optional<merkle_proof> proof_of(element list) {
  merkle_proof proof;
  for (element e : list) {
    if (std::string_view(e).size() != 64) return {};
    proof.push_back(hash_of(std::string_view(e)));
  }
  return proof;
}

/// Some vectors have numbers below zero, as unsigned ones or not.
uint64_t number(element v, const char* key) {
  return v[key].is_uint64() ? uint64_t(v[key]) : uint64_t(int64_t(v[key]));
}

/// A root that is no hash stands for one that nothing makes.
hash32 hash_in(element v, const char* key) {
  const std::string_view hex(v[key]);
  return hex.size() == 64 ? hash_of(hex)
                          : sha256({as_bytes(std::string_view(key).substr(0, 4)), as_bytes(hex)});
}

element load(simdjson::dom::parser& parser, const char* name) {
  return parser.load((protocol_vectors() / name).string());
}

void expect_inclusion(element v, uint64_t start, uint64_t end) {
  const uint64_t index = number(v, "leafIdx");
  auto proof = proof_of(v["proof"]);
  const bool aligned = start < end && start % std::bit_ceil(end - start) == 0 && index >= start;
  const bool good = aligned && proof &&
                    verify_inclusion(hash_in(v, "leafHash"), index - start, end - start, *proof,
                                     hash_in(v, "root"));
  EXPECT_EQ(good, !bool(v["wantErr"])) << std::string_view(v["file"]);
}

void expect_consistency(element v, uint64_t old_size, uint64_t size) {
  auto proof = proof_of(v["proof"]);
  const bool good =
      proof && verify_consistency(old_size, size, *proof, hash_in(v, "root1"), hash_in(v, "root2"));
  EXPECT_EQ(good, !bool(v["wantErr"])) << std::string_view(v["file"]);
}

TEST(MerkleVectors, LeavesMakeTheRoots) {
  LETHE_NEEDS_PROTOCOL_VECTORS();
  simdjson::dom::parser parser;
  element root = load(parser, "merkle-rfc6962.json");
  merkle_tree tree;
  merkle_frontier frontier;
  size_t size = 0;
  for (element r : root["roots"]) {
    EXPECT_EQ(tree.root(), hash_of(std::string_view(r)));
    EXPECT_EQ(frontier.root(), tree.root());
    if (size == root["leaves"].get_array().size()) break;
    const auto next = leaf_hash(from_hex(std::string_view(root["leaves"].at(size++))));
    tree.append(next);
    frontier.append(next);
  }
  EXPECT_EQ(size, 8u);
}

TEST(MerkleVectors, InclusionAndConsistency) {
  LETHE_NEEDS_PROTOCOL_VECTORS();
  simdjson::dom::parser parser;
  element root = load(parser, "merkle-rfc6962.json");
  size_t seen = 0;
  for (element v : root["inclusion"]) expect_inclusion(v, 0, number(v, "treeSize")), ++seen;
  for (element v : root["consistency"])
    expect_consistency(v, number(v, "size1"), number(v, "size2")), ++seen;
  EXPECT_EQ(seen, 196u);
}

TEST(MerkleVectors, Subtrees) {
  LETHE_NEEDS_PROTOCOL_VECTORS();
  simdjson::dom::parser parser;
  element root = load(parser, "merkle-subtree.json");
  size_t inclusions = 0, consistencies = 0;
  for (element v : root["subtreeinclusion"])
    expect_inclusion(v, number(v, "start"), number(v, "end")), ++inclusions;
  for (element v : root["subtreeconsistency"])
    if (number(v, "start") == 0 && number(v, "end") > 0)
      expect_consistency(v, number(v, "end"), number(v, "size")), ++consistencies;
  EXPECT_EQ(inclusions, 204u);
  EXPECT_GT(consistencies, 80u);
}

hash32 nth(uint64_t i) { return leaf_hash(as_bytes(std::to_string(i))); }

/// MTH of RFC 9162, 2.1.1, as it is written there.
hash32 naive_root(uint64_t begin, uint64_t end) {
  if (begin == end) return sha256({});
  if (end - begin == 1) return nth(begin);
  uint64_t k = 1;
  while (k * 2 < end - begin) k *= 2;
  return node_hash(naive_root(begin, begin + k), naive_root(begin + k, end));
}

/// PATH of 2.1.3.1.
merkle_proof naive_path(uint64_t m, uint64_t begin, uint64_t end) {
  if (end - begin == 1) return {};
  uint64_t k = 1;
  while (k * 2 < end - begin) k *= 2;
  const bool left = m < k;
  merkle_proof proof = left ? naive_path(m, begin, begin + k) : naive_path(m - k, begin + k, end);
  proof.push_back(left ? naive_root(begin + k, end) : naive_root(begin, begin + k));
  return proof;
}

/// SUBPROOF of 2.1.4.1.
merkle_proof naive_subproof(uint64_t m, uint64_t begin, uint64_t end, bool whole) {
  if (m == end - begin) return whole ? merkle_proof{} : merkle_proof{naive_root(begin, end)};
  uint64_t k = 1;
  while (k * 2 < end - begin) k *= 2;
  merkle_proof proof = m <= k ? naive_subproof(m, begin, begin + k, whole)
                              : naive_subproof(m - k, begin + k, end, false);
  proof.push_back(m <= k ? naive_root(begin + k, end) : naive_root(begin, begin + k));
  return proof;
}

constexpr uint64_t sizes = 70;

merkle_tree tree_of(uint64_t size) {
  merkle_tree tree;
  for (uint64_t i = 0; i < size; ++i) tree.append(nth(i));
  return tree;
}

TEST(Merkle, RootsAndProofsAreThoseOfTheRfcForAllSizes) {
  const merkle_tree tree = tree_of(sizes);
  for (uint64_t size = 0; size <= sizes; ++size) {
    EXPECT_EQ(tree.root(size), naive_root(0, size));
    EXPECT_EQ(merkle_frontier::from(size, tree.source())->root(), tree.root(size));
    for (uint64_t i = 0; i < size; ++i) {
      auto path = *inclusion_proof(i, size, tree.source());
      ASSERT_EQ(path, naive_path(i, 0, size)) << i << " of " << size;
      EXPECT_TRUE(verify_inclusion(nth(i), i, size, path, tree.root(size)));
      auto proof = *consistency_proof(i + 1, size, tree.source());
      ASSERT_EQ(proof, naive_subproof(i + 1, 0, size, true)) << i + 1 << " to " << size;
      EXPECT_TRUE(verify_consistency(i + 1, size, proof, tree.root(i + 1), tree.root(size)));
    }
  }
}

TEST(Merkle, NoOtherLeafPlaceSizeOrProofIsAccepted) {
  const merkle_tree tree = tree_of(sizes);
  for (uint64_t size : {1, 2, 7, 8, 37, 64, 70})
    for (uint64_t i = 0; i < size; ++i) {
      const auto root = tree.root(size);
      auto path = *inclusion_proof(i, size, tree.source());
      EXPECT_FALSE(verify_inclusion(nth(i + 1), i, size, path, root));
      EXPECT_FALSE(verify_inclusion(nth(i), i + 1, size, path, root));
      EXPECT_FALSE(verify_inclusion(nth(i), i, size, path, tree.root(size - 1)));
      for (auto& hash : path) {
        hash[5] ^= std::byte{1};
        EXPECT_FALSE(verify_inclusion(nth(i), i, size, path, root));
        hash[5] ^= std::byte{1};
      }
      path.push_back(root);
      EXPECT_FALSE(verify_inclusion(nth(i), i, size, path, root));
      path.pop_back();
      if (path.empty()) continue;
      path.pop_back();
      EXPECT_FALSE(verify_inclusion(nth(i), i, size, path, root));
    }
}

/// As bytes, of which a proof is what is whole.
merkle_proof cut_proof(const merkle_proof& proof, size_t from, size_t bytes) {
  const size_t hashes = bytes / sizeof(hash32);
  return {proof.begin() + ptrdiff_t(from), proof.begin() + ptrdiff_t(from + hashes)};
}

TEST(Merkle, AProofThatIsCutAtAnyByteProvesNothing) {
  const merkle_tree tree = tree_of(sizes);
  for (uint64_t size : {1, 2, 3, 7, 8, 37, 64, 70})
    for (uint64_t i = 0; i < size; ++i) {
      const auto root = tree.root(size);
      const auto path = *inclusion_proof(i, size, tree.source());
      const auto proof = *consistency_proof(i + 1, size, tree.source());
      for (size_t bytes = 0; bytes < path.size() * sizeof(hash32); ++bytes)
        for (size_t from : {size_t{0}, path.size() - bytes / sizeof(hash32)})
          ASSERT_FALSE(verify_inclusion(nth(i), i, size, cut_proof(path, from, bytes), root))
              << i << " of " << size << ", " << bytes << " bytes";
      for (size_t bytes = 0; bytes < proof.size() * sizeof(hash32); ++bytes)
        for (size_t from : {size_t{0}, proof.size() - bytes / sizeof(hash32)})
          ASSERT_FALSE(verify_consistency(i + 1, size, cut_proof(proof, from, bytes),
                                          tree.root(i + 1), root))
              << i + 1 << " to " << size << ", " << bytes << " bytes";
    }
}

TEST(Merkle, AForkIsNotConsistent) {
  const merkle_tree tree = tree_of(sizes);
  for (uint64_t old = 1; old < sizes; ++old) {
    auto proof = *consistency_proof(old, sizes, tree.source());
    auto other = tree.root(old);
    other[0] ^= std::byte{1};
    EXPECT_FALSE(verify_consistency(old, sizes, proof, other, tree.root()));
    EXPECT_FALSE(verify_consistency(old, sizes, proof, tree.root(old), other));
    EXPECT_FALSE(verify_consistency(old, sizes - 1, proof, tree.root(old), tree.root()) &&
                 proof.empty());
    for (auto& hash : proof) {
      hash[31] ^= std::byte{1};
      EXPECT_FALSE(verify_consistency(old, sizes, proof, tree.root(old), tree.root()));
      hash[31] ^= std::byte{1};
    }
    proof.push_back(tree.root());
    EXPECT_FALSE(verify_consistency(old, sizes, proof, tree.root(old), tree.root()));
  }
  EXPECT_FALSE(verify_consistency(0, sizes, {}, sha256({}), tree.root()));
}

TEST(Tiles, PathsAreReadAsTheyAreWritten) {
  for (const char* text :
       {"tile/0/000", "tile/0/x001/x234/067", "tile/7/255.p/1", "tile/entries/x001/000.p/255",
        "tile/3/999", "tile/entries/x072/x057/x594/x037/x927/935"}) {
    auto path = tile_path::parse(text);
    ASSERT_TRUE(path) << text;
    EXPECT_EQ(path->text(), text);
  }
  EXPECT_EQ(tile_path::parse("tile/0/x001/x234/067")->index, 1234067u);
  for (const char* text : {"",
                           "tile",
                           "tile/",
                           "tile/0",
                           "tile/0/",
                           "tile/0/00",
                           "tile/0/0000",
                           "tile/00/000",
                           "tile/8/000",
                           "tile/0/x000/001",
                           "tile/0/001/001",
                           "tile/0/x01/001",
                           "tile/0/000.p/0",
                           "tile/0/000.p/256",
                           "tile/0/000.p/08",
                           "tile/0/000.p/",
                           "tile/0/000/",
                           "/tile/0/000",
                           "tile/0/../000",
                           "tile/entries/-01",
                           "tile/-1/000",
                           "tile/entries/000.p/1.p/1",
                           "tile/entries/x018/x446/x744/x073/x709/x551/616"})
    EXPECT_FALSE(tile_path::parse(text)) << text;
}

TEST(Tiles, ThatAreCutAtAnyByteGiveNothing) {
  const merkle_tree tree = tree_of(7);
  bytes whole;
  for (const hash32& h : tree.level(0)) whole.insert(whole.end(), h.begin(), h.end());
  for (size_t size = 0; size <= whole.size() + 1; ++size) {
    bytes served = whole;
    served.resize(size);
    tile_reader tiles(7, [&](std::string_view) -> result<bytes> { return served; });
    EXPECT_EQ(bool(merkle_frontier::from(7, tiles.source())), size == whole.size()) << size;
  }
}

TEST(Tiles, GiveTheSubtreesOfTheTree) {
  constexpr uint64_t size = 66'000;  // two levels of tiles, both ending in partial ones
  const merkle_tree tree = tree_of(size);
  size_t fetched = 0;
  tile_reader tiles(size, [&](std::string_view path) -> result<bytes> {
    ++fetched;
    auto tile = *tile_path::parse(path);
    bytes out;
    for (uint32_t i = 0; i < tile.width; ++i) {
      const hash32& h = tree.level(tile.level * tile_levels).at(tile.index * tile_width + i);
      out.insert(out.end(), h.begin(), h.end());
    }
    return out;
  });
  EXPECT_EQ(merkle_frontier::from(size, tiles.source())->root(), tree.root());
  for (uint64_t at : {uint64_t{0}, uint64_t{255}, uint64_t{40'000}, size - 1}) {
    auto proof = inclusion_proof(at, size, tiles.source());
    ASSERT_TRUE(proof);
    EXPECT_TRUE(verify_inclusion(nth(at), at, size, *proof, tree.root()));
  }
  EXPECT_LT(fetched, 12u);
}

}  // namespace
}  // namespace lethe

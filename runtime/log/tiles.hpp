#pragma once

#include <map>
#include <string>

#include "runtime/log/merkle.hpp"

/// How a log is served: 256 hashes, or 256 entries, to a tile.
namespace lethe {

inline constexpr uint32_t tile_width = 256, tile_levels = 8;  // of the tree, to one of tiles

/// What a reader asks for by path and gets, or not.
using log_fetch = std::function<result<std::vector<std::byte>>(std::string_view path)>;

struct tile_path {
  bool entries = false;
  uint32_t level = 0;  // of tiles; of hashes only
  uint64_t index = 0;
  uint32_t width = tile_width;  // less: a partial one

  bool operator==(const tile_path&) const = default;
  /// "tile/0/x001/x234/067.p/8", "tile/entries/003".
  std::string text() const;
  /// Only what text() makes.
  static result<tile_path> parse(std::string_view text);
};

/// The tile of that index of a row of so many hashes or entries: full, or as wide as it goes.
uint32_t tile_width_of(uint64_t index, uint64_t row_size);

/// The whole subtrees of a tree of that size, read from its tiles as they are needed. What they say
/// is worth nothing until a root has been made of it.
class tile_reader {
 public:
  tile_reader(uint64_t size, log_fetch fetch) : size_(size), fetch_(std::move(fetch)) {}
  result<hash32> subtree(uint32_t level, uint64_t index);
  subtree_source source() {
    return [this](uint32_t level, uint64_t index) { return subtree(level, index); };
  }

 private:
  result<const std::vector<hash32>*> tile(uint32_t level, uint64_t index);
  uint64_t size_;
  log_fetch fetch_;
  std::map<std::pair<uint32_t, uint64_t>, std::vector<hash32>> tiles_;
};

}  // namespace lethe

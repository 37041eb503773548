#include "runtime/log/tiles.hpp"

#include <charconv>

namespace lethe {

namespace {

/// Groups of three digits, an x before all but the last.
std::string index_text(uint64_t index) {
  std::string out = fmt::format("{:03}", index % 1000);
  while ((index /= 1000) > 0) out = fmt::format("x{:03}/", index % 1000) + out;
  return out;
}

/// Takes digits off the front.
uint64_t take_number(std::string_view& text) {
  uint64_t number = 0;
  auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(size_t(end - text.data()));
  return wrong == std::errc() ? number : 0;
}

bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

constexpr size_t path_chars_max = 64;

/// Whatever of the path can be read; only the right path is written back as it was.
tile_path read_loosely(std::string_view text) {
  tile_path path;
  if (!take(text, "tile/")) return path;
  path.entries = take(text, "entries/");
  if (!path.entries) path.level = uint32_t(take_number(text)), take(text, "/");
  while (take(text, "x")) path.index = (path.index + take_number(text)) * 1000, take(text, "/");
  path.index += take_number(text);
  if (take(text, ".p/")) path.width = uint32_t(take_number(text));
  return path;
}

}  // namespace

std::string tile_path::text() const {
  std::string out = entries ? "tile/entries/" : fmt::format("tile/{}/", level);
  out += index_text(index);
  if (width < tile_width) out += fmt::format(".p/{}", width);
  return out;
}

result<tile_path> tile_path::parse(std::string_view text) {
  if (text.size() > path_chars_max) return fail("tile: a path of {} characters", text.size());
  const tile_path path = read_loosely(text);
  if (path.level > 63 / tile_levels || path.width == 0 || path.width > tile_width ||
      path.text() != text)
    return fail("tile: not a path of a tile");
  return path;
}

uint32_t tile_width_of(uint64_t index, uint64_t row_size) {
  if (index > row_size / tile_width) return 0;
  return uint32_t(std::min<uint64_t>(tile_width, row_size - index * tile_width));
}

result<hash32> tile_reader::subtree(uint32_t level, uint64_t index) {
  const uint32_t inside = level % tile_levels;
  const uint64_t begin = index << inside;
  auto hashes = tile(level / tile_levels, begin / tile_width);
  if (!hashes) return hashes.why();
  merkle_frontier tree;
  for (uint64_t i = 0; i < uint64_t{1} << inside; ++i)
    tree.append((**hashes)[size_t(begin % tile_width + i)]);
  return tree.root();
}

result<const std::vector<hash32>*> tile_reader::tile(uint32_t level, uint64_t index) {
  auto [at, fresh] = tiles_.try_emplace({level, index});
  if (!fresh) return &at->second;
  const tile_path path{.level = level,
                       .index = index,
                       .width = tile_width_of(index, size_ >> (tile_levels * level))};
  auto bytes = fetch_(path.text());
  if (bytes && bytes->size() != path.width * sizeof(hash32))
    bytes = fail("log: {} has {} bytes; {} were due", path.text(), bytes->size(),
                 path.width * sizeof(hash32));
  if (!bytes) {
    tiles_.erase(at);
    return bytes.why();
  }
  at->second.resize(path.width);
  std::memcpy(at->second.data(), bytes->data(), bytes->size());
  return &at->second;
}

}  // namespace lethe

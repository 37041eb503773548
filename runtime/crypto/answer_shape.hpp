#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace lethe {

/// How much an answer's chunks hide, the least first.
enum class shape_mode : uint8_t { off, size, size_tick };
inline constexpr std::array<const char*, 3> shape_mode_names = {"off", "size", "size_tick"};
constexpr const char* name_of(shape_mode m) { return shape_mode_names[size_t(m)]; }

/// How an answer's chunks leave (docs/PROTOCOL.md, section 8): logged policy, the same for
/// everyone.
struct answer_shape {
  // The least holds a receipt; the most leaves both layers' frames the same length everywhere.
  static constexpr uint32_t chunk_bytes_least = 256, chunk_bytes_most = 8192;

  uint32_t chunk_bytes = 0;  // of plaintext in every chunk; 0: as much as there is to say
  uint32_t tick_ms = 0;      // between chunks; 0: when there is something to say

  constexpr bool sized() const { return chunk_bytes > 0; }
  constexpr bool ticks() const { return sized() && tick_ms > 0; }
  constexpr shape_mode mode() const {
    return !sized() ? shape_mode::off : ticks() ? shape_mode::size_tick : shape_mode::size;
  }
  /// Sizes within their bounds, and no tick without a size.
  constexpr bool valid() const {
    return sized() ? chunk_bytes >= chunk_bytes_least && chunk_bytes <= chunk_bytes_most
                   : tick_ms == 0;
  }
  bool operator==(const answer_shape&) const = default;
};

}  // namespace lethe

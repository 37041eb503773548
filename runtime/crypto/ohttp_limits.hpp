#pragma once

#include <cstddef>

namespace lethe::limits {

inline constexpr size_t ohttp_keys_bytes_max = size_t{16} << 10;  // 256 keys of one suite: 12 KB
// What a message of known length has at most, sealed: it is held until all of it is there.
inline constexpr size_t ohttp_whole_bytes_max = size_t{64} << 20;

}  // namespace lethe::limits

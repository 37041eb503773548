#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <utility>

#include "runtime/base/result.hpp"

namespace lethe {

inline constexpr size_t arena_reserve_max = size_t{1} << 40;

/// What a destroyed arena wiped, and how long that took.
struct arena_report {
  uint64_t bytes = 0;
  uint64_t nanoseconds = 0;
};

class arena_region;

/// All that a process holds of one request: an address range that is reserved at once and
/// committed as it fills, so nothing in it ever moves. Kept out of core dumps and of children,
/// locked into memory as far as RLIMIT_MEMLOCK allows, inaccessible at both ends. Used by one
/// thread at a time. Every call on a moved-from or destroyed arena ends the process.
class arena {
 public:
  static result<arena> make(size_t reserve_bytes);
  /// The same over a memfd, so that another mapping sees what is written (shared-memory data
  /// planes). Children inherit such memory. The caller keeps the descriptor; its size is set.
  static result<arena> make_shared(int fd, size_t reserve_bytes);

  arena(arena&& o) noexcept : region_(std::exchange(o.region_, nullptr)) {}
  arena& operator=(arena&& o) noexcept;
  arena(const arena&) = delete;
  arena& operator=(const arena&) = delete;
  ~arena();

  /// Zeroed memory that lives as long as the arena; null when the reserve (or the host's memory)
  /// is exhausted. `align` is a power of two up to a page.
  void* take(size_t bytes, size_t align = alignof(std::max_align_t)) noexcept;
  /// The same for standard containers; throws std::bad_alloc where take returns null. The most
  /// recent block can be given back, and is wiped then; others wait for the end. Valid until
  /// destroy, also when the arena is moved.
  std::pmr::memory_resource* resource() noexcept;

  size_t used() const noexcept;  // bytes handed out, padding included
  size_t committed() const noexcept;
  size_t reserved() const noexcept;
  bool locked() const noexcept;  // all that is committed

  /// Wipes every byte that was ever handed out, then unmaps.
  arena_report destroy() noexcept;

 private:
  explicit arena(arena_region* region) : region_(region) {}
  static result<arena> make_in(int fd, size_t reserve_bytes);
  arena_region& alive() const noexcept;
  arena_region* region_;
};

/// Of this process: how many arenas are alive, and what all destroyed ones wiped.
struct arena_totals {
  uint64_t alive = 0, destroyed = 0;
  uint64_t bytes_wiped = 0;
};
arena_totals count_arenas() noexcept;

}  // namespace lethe

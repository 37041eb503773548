#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>

#include "runtime/arena/arena.hpp"

namespace lethe {

/// The mapping behind an arena: [this object's page | guard | data ... | guard]. It lives in its
/// own first page, which is unmapped with the rest: a resource that outlives its arena faults.
class arena_region final : public std::pmr::memory_resource {
 public:
  static result<arena_region*> map(int fd, size_t reserve_bytes);
  /// Wipes and unmaps; *this is gone afterwards.
  arena_report end() noexcept;

  void* take(size_t bytes, size_t align) noexcept;

  size_t used() const noexcept { return used_; }
  size_t committed() const noexcept { return committed_; }
  size_t reserved() const noexcept { return reserved_; }
  bool locked() const noexcept { return locked_; }

 private:
  arena_region(std::byte* data, size_t reserved, int fd) noexcept;
  bool commit(size_t bytes) noexcept;
  void* do_allocate(size_t bytes, size_t align) override;
  void do_deallocate(void* at, size_t bytes, size_t align) override;
  bool do_is_equal(const memory_resource& o) const noexcept override { return this == &o; }

  std::byte* data_;
  size_t reserved_;
  size_t committed_ = 0;
  size_t used_ = 0;
  size_t touched_ = 0;  // the most that `used_` ever was
  bool shared_;
  bool locked_ = true;
};

}  // namespace lethe

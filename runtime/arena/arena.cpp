#include "runtime/arena/arena.hpp"

#include <atomic>

#include "runtime/arena/region.hpp"
#include "runtime/base/check.hpp"

namespace lethe {
namespace {

// The one thing that all arenas of a process share, so that a drain can wait for zero.
std::atomic<uint64_t> made{0}, destroyed{0}, bytes_wiped{0};

}  // namespace

result<arena> arena::make(size_t reserve_bytes) { return make_in(-1, reserve_bytes); }

result<arena> arena::make_shared(int fd, size_t reserve_bytes) {
  if (fd < 0) return fail("arena: no descriptor to share memory over");
  return make_in(fd, reserve_bytes);
}

result<arena> arena::make_in(int fd, size_t reserve_bytes) {
  auto region = arena_region::map(fd, reserve_bytes);
  if (!region) return region.why();
  made.fetch_add(1, std::memory_order_relaxed);
  return arena(*region);
}

arena& arena::operator=(arena&& o) noexcept {
  if (this == &o) return *this;
  if (region_ != nullptr) destroy();
  region_ = std::exchange(o.region_, nullptr);
  return *this;
}

arena::~arena() {
  if (region_ != nullptr) destroy();
}

arena_region& arena::alive() const noexcept {
  check(region_ != nullptr);
  return *region_;
}

void* arena::take(size_t bytes, size_t align) noexcept { return alive().take(bytes, align); }
std::pmr::memory_resource* arena::resource() noexcept { return &alive(); }
size_t arena::used() const noexcept { return alive().used(); }
size_t arena::committed() const noexcept { return alive().committed(); }
size_t arena::reserved() const noexcept { return alive().reserved(); }
bool arena::locked() const noexcept { return alive().locked(); }

arena_report arena::destroy() noexcept {
  arena_report report = alive().end();
  region_ = nullptr;
  bytes_wiped.fetch_add(report.bytes, std::memory_order_relaxed);
  destroyed.fetch_add(1, std::memory_order_release);
  return report;
}

arena_totals count_arenas() noexcept {
  arena_totals t;
  t.destroyed = destroyed.load(std::memory_order_acquire);  // first: `alive` never too small
  t.alive = made.load(std::memory_order_relaxed) - t.destroyed;
  t.bytes_wiped = bytes_wiped.load(std::memory_order_relaxed);
  return t;
}

}  // namespace lethe

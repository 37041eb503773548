#include "runtime/batch/pages.hpp"

#include <algorithm>
#include <functional>

#include "runtime/base/check.hpp"

namespace lethe {

namespace {

struct page_run {
  uint32_t first = 0, count = 0;
};

/// Of free neighbours: the first `count`, or, where nowhere are so many, all there are, those that
/// are most first.
std::vector<page_run> free_runs(const page_pool& pool, uint32_t count) {
  std::vector<page_run> all;
  for (uint32_t id = 0, next = 0; id < pool.total(); ++id) {
    if (pool.pages[id].state != page_state::free) continue;
    if (id != next || all.empty()) all.push_back({id, 0});
    next = id + 1;
    if (++all.back().count == count) return {all.back()};
  }
  std::ranges::stable_sort(all, std::greater<>(), &page_run::count);
  return all;
}

}  // namespace

page_pool make_page_pool(uint32_t total) {
  page_pool pool;
  pool.pages.resize(total);
  pool.free = total;
  return pool;
}

void take_pages(page_pool& pool, uint32_t count, std::vector<uint32_t>& to) {
  check(count <= pool.free);
  pool.free -= count;
  pool.used += count;
  for (page_run run : free_runs(pool, count)) {
    for (uint32_t id = run.first; id < run.first + run.count && count > 0; ++id, --count) {
      pool.pages[id] = {.state = page_state::used, .written = false, .refs = 1};
      to.push_back(id);
    }
  }
}

void share_page(page_pool& pool, uint32_t id) {
  check(pool.pages[id].state == page_state::used);
  ++pool.pages[id].refs;
}

bool drop_page(page_pool& pool, uint32_t id) {
  page& p = pool.pages[id];
  check(p.state == page_state::used);
  check(p.refs > 0);
  if (--p.refs > 0) return false;
  --pool.used;
  if (!p.written) {
    p.state = page_state::free;
    ++pool.free;
    return false;
  }
  --pool.holding;
  p.state = page_state::retiring;
  ++pool.retiring;
  return true;
}

void mark_written(page_pool& pool, uint32_t id) {
  page& p = pool.pages[id];
  check(p.state == page_state::used);
  if (p.written) return;
  p.written = true;
  ++pool.holding;
}

void free_wiped_page(page_pool& pool, uint32_t id) {
  check(pool.pages[id].state == page_state::retiring);
  pool.pages[id] = {};
  --pool.retiring;
  ++pool.free;
}

}  // namespace lethe

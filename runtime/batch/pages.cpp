#include "runtime/batch/pages.hpp"

#include "runtime/base/check.hpp"

namespace lethe {

page_pool make_page_pool(uint32_t total) {
  page_pool pool;
  pool.pages.resize(total);
  pool.free.reserve(total);
  for (uint32_t id = total; id-- > 0;) pool.free.push_back(id);
  return pool;
}

uint32_t take_page(page_pool& pool) {
  check(!pool.free.empty());
  uint32_t id = pool.free.back();
  pool.free.pop_back();
  check(pool.pages[id].state == page_state::free);
  pool.pages[id] = {.state = page_state::used, .written = false, .refs = 1};
  ++pool.used;
  return id;
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
    pool.free.push_back(id);
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
  pool.free.push_back(id);
}

}  // namespace lethe

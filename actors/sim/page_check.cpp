#include "actors/sim/page_check.hpp"

namespace lethe::sim {

std::string check_pages_of(const planner_state& state) {
  struct held {
    uint32_t refs = 0;
    uint64_t owner = 0;
  };
  const auto& pool = state.pool;
  std::vector<held> by_page(pool.total());
  for (const auto& s : state.sequences) {
    auto hold = [&](uint32_t page) {
      auto& h = by_page.at(page);
      if (h.refs > 0 && h.owner != s.request) return false;
      ++h.refs;
      h.owner = s.request;
      return true;
    };
    for (uint32_t page : s.pages)
      if (!hold(page)) return fmt::format("page {} has two owners", page);
    if (s.fork && !hold(s.fork->from)) return fmt::format("page {} has two owners", s.fork->from);
  }
  uint32_t free = 0, used = 0, retiring = 0;
  for (uint32_t i = 0; i < pool.total(); ++i) {
    const auto& p = pool.pages[i];
    free += p.state == page_state::free;
    used += p.state == page_state::used;
    retiring += p.state == page_state::retiring;
    uint32_t refs = p.state == page_state::used ? p.refs : 0;
    if (refs != by_page[i].refs)
      return fmt::format("page {} counts {} holders and has {}", i, refs, by_page[i].refs);
  }
  if (free != pool.free || used != pool.used || retiring != pool.retiring)
    return fmt::format("{} free, {} used and {} retiring pages are counted as {}, {} and {}", free,
                       used, retiring, pool.free, pool.used, pool.retiring);
  return {};
}

}  // namespace lethe::sim

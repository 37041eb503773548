#pragma once

#include <cstdint>
#include <vector>

namespace lethe {

/// free: wiped, anyone's. used: someone holds it. retiring: held no more, not yet wiped.
enum class page_state : uint8_t { free, used, retiring };

struct page {
  page_state state = page_state::free;
  bool written = false;  // a plan has put keys and values into it since it was taken
  uint32_t refs = 0;
};

/// Who holds which key/value page. used + retiring + free == total at all times; a page is taken
/// only from `free`, and gets there only unwritten or wiped.
struct page_pool {
  std::vector<page> pages;
  uint32_t free = 0, used = 0, retiring = 0;
  uint32_t holding = 0;  // used pages that are written

  uint32_t total() const { return uint32_t(pages.size()); }
};

page_pool make_page_pool(uint32_t total);

/// Adds `count` free pages, with one reference each; there must be as many. Neighbours, as they are
/// read faster: the first that are enough, else the most there are, then the next most.
void take_pages(page_pool& pool, uint32_t count, std::vector<uint32_t>& to);
/// One more holder. More than one may only read.
void share_page(page_pool& pool, uint32_t id);
/// One holder less. True: it was the last and the page is now retiring, to be wiped. An unwritten
/// page is free again at once.
bool drop_page(page_pool& pool, uint32_t id);
/// A plan that writes to it was made.
void mark_written(page_pool& pool, uint32_t id);
/// The plan that wipes it is complete.
void free_wiped_page(page_pool& pool, uint32_t id);

constexpr uint32_t pages_for(uint32_t tokens, uint32_t page_tokens) {
  return tokens / page_tokens + (tokens % page_tokens != 0);
}

}  // namespace lethe

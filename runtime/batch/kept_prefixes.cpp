#include "runtime/batch/kept_prefixes.hpp"

#include <sys/random.h>

#include "runtime/base/check.hpp"

namespace lethe {

namespace {

/// The finalizer of splitmix64 (Steele, Lea, Flood 2014).
constexpr uint64_t mixed(uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

void drop_oldest(kept_prefixes& kept, page_pool& pool, std::vector<uint32_t>& wipes) {
  auto oldest = kept.pages.find(kept.order.front());
  kept.order.pop_front();
  if (drop_page(pool, oldest->second)) wipes.push_back(oldest->second);
  kept.pages.erase(oldest);
}

}  // namespace

kept_prefixes make_kept_prefixes(uint32_t pages_max) {
  kept_prefixes kept{.pages_max = pages_max};
  if (pages_max > 0)
    check(getrandom(kept.secret.data(), sizeof kept.secret, 0) == ssize_t{sizeof kept.secret});
  return kept;
}

std::vector<prefix_key> keys_of(const kept_prefixes& kept, std::span<const uint32_t> prompt,
                                uint32_t page_tokens) {
  std::vector<prefix_key> keys;
  prefix_key so_far = kept.secret;
  for (size_t i = 0; i < prompt.size(); ++i) {
    so_far = {mixed(so_far[0] + prompt[i] + 1), mixed(so_far[1] ^ (so_far[0] + prompt[i]))};
    if ((i + 1) % page_tokens == 0) keys.push_back(so_far);
  }
  return keys;
}

uint32_t count_kept(const kept_prefixes& kept, std::span<const prefix_key> keys, uint32_t most) {
  uint32_t n = 0;
  while (n < most && n < keys.size() && kept.pages.contains(keys[n])) ++n;
  return n;
}

void keep_pages(kept_prefixes& kept, page_pool& pool, std::span<const prefix_key> keys,
                std::span<const uint32_t> pages, std::vector<uint32_t>& wipes) {
  for (size_t i = 0; i < std::min(keys.size(), pages.size()); ++i) {
    if (!kept.pages.emplace(keys[i], pages[i]).second) continue;
    share_page(pool, pages[i]);
    kept.order.push_back(keys[i]);
  }
  while (kept.order.size() > kept.pages_max) drop_oldest(kept, pool, wipes);
}

void make_room(kept_prefixes& kept, page_pool& pool, uint64_t pages, std::vector<uint32_t>& wipes) {
  while (!kept.order.empty() && pool.free + pool.retiring < pages) drop_oldest(kept, pool, wipes);
}

}  // namespace lethe

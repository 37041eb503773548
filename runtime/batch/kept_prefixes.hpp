#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <vector>

#include "runtime/batch/pages.hpp"

namespace lethe {

/// Stands for a prompt's tokens up to the end of one of its pages. Made under random numbers of
/// this process; equal ones of different tokens are an accident that nobody will see, but no
/// cryptography rules them out: the lab alone keeps anything.
using prefix_key = std::array<uint64_t, 2>;

/// Lab only: whole pages of prompts that ended, for later prompts that begin alike. Whoever can
/// tell how much of a prompt was computed learns what others asked; that this is seen is why it
/// exists. Its pages are plaintext, wiped when they are dropped and when the engine ends.
struct kept_prefixes {
  uint32_t pages_max = 0;  // 0: none are kept
  prefix_key secret{};
  std::map<prefix_key, uint32_t> pages;
  std::deque<prefix_key> order;  // the oldest first
};

kept_prefixes make_kept_prefixes(uint32_t pages_max);

/// One for each whole page of the prompt.
std::vector<prefix_key> keys_of(const kept_prefixes& kept, std::span<const uint32_t> prompt,
                                uint32_t page_tokens);

/// How many pages from the first on are kept; `most` at most.
uint32_t count_kept(const kept_prefixes& kept, std::span<const prefix_key> keys, uint32_t most);

/// Holds the pages of a prompt that ends; the oldest go when there are too many. What nobody holds
/// any more is added to `wipes`.
void keep_pages(kept_prefixes& kept, page_pool& pool, std::span<const prefix_key> keys,
                std::span<const uint32_t> pages, std::vector<uint32_t>& wipes);

/// Drops the oldest until so many pages are free or about to be.
void make_room(kept_prefixes& kept, page_pool& pool, uint64_t pages, std::vector<uint32_t>& wipes);

}  // namespace lethe

#pragma once

#include <functional>
#include <stdexcept>
#include <thread>

#include "parallel/gloo_communicator.hpp"

namespace lethe::testing {

/// Runs body(rank) on a thread for each rank.
inline void on_all(uint32_t ranks, const std::function<void(uint32_t)>& body) {
  std::vector<std::thread> threads;
  for (uint32_t r = 0; r < ranks; ++r) threads.emplace_back(body, r);
  for (std::thread& t : threads) t.join();
}

inline key_bytes secret_of(uint8_t first) {
  key_bytes k(32);
  for (size_t i = 0; i < 32; ++i) k.data()[i] = std::byte(first + i);
  return k;
}

/// One rank's config in a group of tests.
inline gloo_config gloo_rank(uint32_t rank, uint32_t size, bool protected_link = false) {
  return {.epoch = 7,
          .group = "tensor 0",
          .rank = rank,
          .size = size,
          .secret = secret_of(1),
          .protected_link = protected_link,
          .timeout = std::chrono::seconds(20),
          .forming = std::chrono::seconds(20)};
}

using gloo_ends = std::vector<std::unique_ptr<gloo_communicator>>;

/// A group whose ranks are threads of the test, as `config_of` says for each.
inline gloo_ends gloo_group_of(uint32_t size,
                               const std::function<gloo_config(uint32_t)>& config_of) {
  memory_rank_store store;
  gloo_ends ends(size);
  std::vector<std::string> whys(size);
  on_all(size, [&](uint32_t r) {
    auto joined = gloo_communicator::join(config_of(r), store);
    if (joined)
      ends[r] = *std::move(joined);
    else
      whys[r] = joined.why().text;
  });
  for (const std::string& why : whys)
    if (!why.empty()) throw std::runtime_error(why);
  return ends;
}

inline gloo_ends make_gloo_group(uint32_t size, bool protected_link = false) {
  return gloo_group_of(size, [=](uint32_t r) { return gloo_rank(r, size, protected_link); });
}

}  // namespace lethe::testing

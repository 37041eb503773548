#pragma once

#include <csignal>

#include "actors/cluster/node.hpp"
#include "actors/cluster/rank_line.hpp"
#include "parallel/process_ranks.hpp"
#include "tests/unit/parallel_grid_run.hpp"

// What all ranks of a test agree on.

namespace lethe::e2e {

/// Where a rank says why it ended.
inline std::string why_of(const std::string& rank) { return "why " + rank; }

/// What ranks and their store show each other.
inline rank_keys keys_in(const std::filesystem::path& folder) {
  std::signal(SIGPIPE, SIG_IGN);  // as the program does
  auto keys = rank_keys::of({folder / "own.crt", folder / "own.key", folder / "ca.crt", ""});
  if (!keys) throw std::runtime_error(keys.why().text);
  return *std::move(keys);
}

inline constexpr uint32_t rank_prompt_tokens[] = {33, 1, 20};

/// Only the leader makes them: no other process may hold what it was not told.
inline std::vector<testing::prompt> rank_prompts(uint32_t vocab) {
  std::vector<testing::prompt> all;
  for (uint32_t tokens : rank_prompt_tokens)
    all.push_back(testing::random_prompt(tokens, vocab, tokens));
  return all;
}

inline testing::manner rank_manner(const cut& ranks) {
  return {.ranks = ranks, .threads = 2, .chunk = 9};
}

inline grid_config rank_grid(const cut& ranks) {
  std::vector<testing::prompt> as_long;
  for (uint32_t tokens : rank_prompt_tokens) as_long.emplace_back(tokens);
  return testing::config_for(as_long, rank_manner(ranks));
}

inline gloo_config rank_gloo(uint32_t rank, const cut& ranks, bool protected_link,
                             std::chrono::milliseconds timeout) {
  key_bytes secret(32);
  for (size_t i = 0; i < 32; ++i) secret.data()[i] = std::byte(i * 7 + 1);
  return {.epoch = 1,
          .group = "replica 0",
          .rank = rank,
          .size = ranks.tensor * ranks.pipeline,
          .secret = std::move(secret),
          .protected_link = protected_link,
          .timeout = timeout,
          .forming = std::chrono::seconds(60)};
}

}  // namespace lethe::e2e

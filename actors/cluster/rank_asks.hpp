#pragma once

#include <optional>

#include "actors/cluster/rank_line.hpp"
#include "parallel/rank_store.hpp"
#include "runtime/crypto/key_bytes.hpp"

namespace lethe {

inline constexpr size_t rank_secret_bytes = 32;

/// Which rank of which engine somebody says to be.
struct rank_claim {
  uint16_t slot = 0;
  uint32_t epoch = 0;
  uint32_t rank = 0;
};

// What a rank says to the process of its engine:

/// First of all. What it gets is the secret of the epoch.
result<key_bytes> join_engine(rank_line& line, const rank_claim& claim);
/// Last of all.
void say_end(rank_line& line, const std::string& why);

/// The store as a rank's process sees it: its engine's process answers.
class asked_store final : public rank_store {
 public:
  explicit asked_store(rank_line& line) : line_(line) {}
  result<void> set(std::string_view key, bytes_view value) override;
  result<std::vector<std::byte>> get(std::string_view key, deadline until) override;

 private:
  rank_line& line_;
};

// The other end:

std::optional<rank_claim> hear_claim(rank_line& line);
bool refuse_claim(rank_line& line, const std::string& why);
bool grant_claim(rank_line& line, const key_bytes& secret);
/// Answers from `store` until the rank is gone, or says what is no message. Why it ended, if it
/// said so.
std::string answer_rank(rank_line& line, rank_store& store);

}  // namespace lethe

#pragma once

#include "parallel/rank_store.hpp"

namespace lethe {

/// The store as a rank's process sees it: its engine's process answers, over a socket of theirs.
class rank_socket final : public rank_store {
 public:
  explicit rank_socket(int fd) : fd_(fd) {}
  result<void> set(std::string_view key, bytes_view value) override;
  result<std::vector<std::byte>> get(std::string_view key, deadline until) override;

 private:
  const int fd_;
};

/// The other end: answers from `store` until the rank is gone, or says what is no message.
void answer_rank(int fd, rank_store& store);

}  // namespace lethe

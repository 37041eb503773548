#pragma once

#include <unordered_set>

#include "runtime/base/bytes.hpp"
#include "runtime/crypto/sha256.hpp"

namespace lethe {

/// The seals that were opened with one node key. It lives as long as the key, forgets nothing and
/// takes no more than `max` (limits::seals_remembered_max at most): evicting one would let it in
/// again. Used by one thread at a time.
class seen_seals {
 public:
  explicit seen_seals(size_t max);

  /// True if `enc` was not seen, and is remembered from now on. False is a refusal: it was seen,
  /// or there is no room.
  [[nodiscard]] bool insert(bytes_view enc);
  bool full() const noexcept { return seen_.size() >= max_; }
  size_t size() const noexcept { return seen_.size(); }

 private:
  struct first_bytes {
    size_t operator()(const hash32& h) const noexcept { return load_le<size_t>(h.data()); }
  };
  size_t max_;
  hash32 salt_;  // a client that knows it could fill one bucket
  std::unordered_set<hash32, first_bytes> seen_;
};

}  // namespace lethe

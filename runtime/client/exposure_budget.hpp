#pragma once

#include <map>
#include <mutex>

#include "runtime/base/result.hpp"
#include "runtime/client/client_limits.hpp"
#include "runtime/crypto/key_bytes.hpp"
#include "runtime/crypto/sha256.hpp"

namespace lethe {

/// How often nodes were drawn for one body: each new draw shows it to one more node, whatever it
/// was for, so there are 1 + r of them at most. Bodies are remembered by a hash under a key of this
/// process, in memory only, for ten minutes after their last draw.
class exposure_budget {
 public:
  static constexpr uint64_t remembered_s = 600;

  explicit exposure_budget(size_t bodies_max = limits::exposed_bodies_max);

  using body_hash = hash32;
  body_hash hash_of(bytes_view body) const;
  /// Counts a draw: its number, from 1 on. Refuses one above 1 + `redraws`, and new bodies while
  /// too many are remembered.
  result<uint32_t> draw(const body_hash& body, uint32_t redraws, uint64_t now_s);
  /// A draw that no node, and nobody else, will ever hear of: it was for nothing.
  void take_back(const body_hash& body);
  size_t remembered(uint64_t now_s);

 private:
  struct counted {
    uint32_t draws = 0;
    uint64_t last_s = 0;
  };
  void forget(uint64_t now_s);

  const size_t bodies_max_;
  key_bytes key_;
  std::mutex mutex_;
  std::map<body_hash, counted> bodies_;
  uint64_t swept_s_ = 0;
};

}  // namespace lethe

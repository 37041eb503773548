#pragma once

#include "parallel/region.hpp"
#include "parallel/step_plan.hpp"
#include "runtime/base/bytes.hpp"

namespace lethe {

/// A plan and the token ids of its step, as one process tells them to another. The ids are content:
/// the memory is out of core dumps, and whoever is done with them wipes them.
class plan_bytes {
 public:
  /// Every message begins with so many bytes, however short it is: most are no longer.
  static constexpr size_t first_bytes = 4096;
  /// Page tables of 4,096 sequences of 2,048 pages.
  static constexpr size_t bytes_max = size_t{40} << 20;
  static result<plan_bytes> make();

  /// `ids` may be null where nobody needs them.
  result<void> write(const step_plan& plan, const uint32_t* ids);
  /// Says that no further plan comes.
  void write_end();

  std::span<std::byte> first() { return {memory_.data(), first_bytes}; }
  /// What does not fit into the first bytes. Refused where the first say what cannot be.
  result<std::span<std::byte>> rest();

  /// Reads what another process wrote. Bounded by what came; whether it fits a shard is for
  /// check_plan to say. False: no further plan comes. `ids` point into here.
  result<bool> read(step_plan& plan, const uint32_t*& ids);
  /// Nothing of the message stays.
  void wipe();

 private:
  explicit plan_bytes(region memory) : memory_(std::move(memory)) {}
  region memory_;
};

}  // namespace lethe

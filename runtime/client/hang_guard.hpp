#pragma once

#include <cstdint>
#include <optional>

#include "runtime/client/call_fault.hpp"

namespace lethe {

uint64_t steady_clock_s();

/// Who asks a cluster that hangs? Once a wait for it has come to nothing nobody does for a while,
/// then one, and meanwhile the others are told so at once. One thread at a time may call.
class hang_guard {
 public:
  static constexpr uint64_t pause_s = 10;
  static constexpr uint64_t try_s = 20;  // others wait for the one that asks again, so long at most

  /// What whoever would ask now is told instead; nothing: ask.
  std::optional<call_end> refusal(uint64_t now_s) const;
  void begins(uint64_t now_s) { again_at_s_ = now_s + try_s; }
  void ended(const call_end& how, uint64_t now_s);

 private:
  std::optional<call_end> hung_;
  uint64_t again_at_s_ = 0;
};

}  // namespace lethe

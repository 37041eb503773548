#include "runtime/client/hang_guard.hpp"

#include <chrono>

namespace lethe {

uint64_t steady_clock_s() {
  using namespace std::chrono;
  return uint64_t(duration_cast<seconds>(steady_clock::now().time_since_epoch()).count());
}

std::optional<call_end> hang_guard::refusal(uint64_t now_s) const {
  if (!hung_ || now_s >= again_at_s_) return {};
  const uint64_t wait_s = again_at_s_ - now_s;
  auto end = fault(call_fault::busy, "{}; it is asked again in {} s", hung_->why.text, wait_s);
  end.retry_after_s = uint32_t(wait_s);
  return end;
}

void hang_guard::ended(const call_end& how, uint64_t now_s) {
  hung_.reset();
  if (!how.hung) return;
  hung_ = how;
  again_at_s_ = now_s + pause_s;
}

}  // namespace lethe

#include "runtime/client/exposure_budget.hpp"

#include "runtime/crypto/hkdf.hpp"
#include "runtime/crypto/random.hpp"

namespace lethe {

exposure_budget::exposure_budget(size_t bodies_max)
    : bodies_max_(bodies_max), key_(sizeof(body_hash)) {
  fill_random(key_.bytes());
}

/// HMAC-SHA256: without the key nobody can try bodies against what is remembered.
exposure_budget::body_hash exposure_budget::hash_of(bytes_view body) const {
  const key_bytes keyed = hkdf_extract(key_.view(), {body});
  body_hash out;
  std::ranges::copy(keyed.view(), out.begin());
  return out;
}

result<uint32_t> exposure_budget::draw(const body_hash& body, uint32_t redraws, uint64_t now_s) {
  std::lock_guard lock(mutex_);
  forget(now_s);
  auto known = bodies_.find(body);
  if (known == bodies_.end() && bodies_.size() >= bodies_max_)
    return fail("exposure: {} different bodies within {} s; ask fewer", bodies_.size(),
                remembered_s);
  if (known != bodies_.end() && known->second.draws > redraws)
    return fail(
        "exposure: nodes were drawn {} times for this body, as often as the policy allows (1 + "
        "{}); "
        "ask again in {} s, or in other words",
        known->second.draws, redraws, known->second.last_s + remembered_s - now_s);
  counted& c = bodies_[body];
  c.last_s = now_s;
  return ++c.draws;
}

void exposure_budget::take_back(const body_hash& body) {
  std::lock_guard lock(mutex_);
  auto known = bodies_.find(body);
  if (known != bodies_.end() && --known->second.draws == 0) bodies_.erase(known);
}

size_t exposure_budget::remembered(uint64_t now_s) {
  std::lock_guard lock(mutex_);
  forget(now_s);
  return bodies_.size();
}

/// Once a second at most.
void exposure_budget::forget(uint64_t now_s) {
  if (std::exchange(swept_s_, now_s) == now_s) return;
  std::erase_if(bodies_, [&](const auto& b) { return now_s >= b.second.last_s + remembered_s; });
}

}  // namespace lethe

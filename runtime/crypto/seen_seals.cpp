#include "runtime/crypto/seen_seals.hpp"

#include "runtime/base/check.hpp"
#include "runtime/base/limits.hpp"
#include "runtime/crypto/random.hpp"

namespace lethe {

seen_seals::seen_seals(size_t max) : max_(max) {
  check(max <= limits::seals_remembered_max);
  fill_random(salt_);
}

bool seen_seals::insert(bytes_view enc) {
  return !full() && seen_.insert(sha256({salt_, enc})).second;
}

}  // namespace lethe

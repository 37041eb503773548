#include "runtime/crypto/random.hpp"

#include <openssl/rand.h>

#include "runtime/base/check.hpp"
#include "runtime/crypto/openssl.hpp"

namespace lethe {

void fill_random(std::span<std::byte> to) {
  check(RAND_bytes(openssl::uchars(to.data()), int(to.size())) == 1);
}

}  // namespace lethe

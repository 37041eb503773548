#pragma once

#include "runtime/crypto/sha256.hpp"
#include "runtime/model/checkpoint.hpp"

namespace lethe {

/// By this two hosts see whether their files hold the same weights: of every tensor its name and
/// form, and some bytes all over it. Another training shows; one changed number may not.
hash32 mark_of(const checkpoint& model);

}  // namespace lethe

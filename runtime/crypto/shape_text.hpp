#pragma once

#include <string>

#include "runtime/crypto/answer_shape.hpp"

namespace lethe {

/// What somebody who watches the network sees of answers.
std::string text_of(const answer_shape& s);

}  // namespace lethe

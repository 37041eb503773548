#pragma once

#include <string>
#include <string_view>

#include "runtime/base/result.hpp"

namespace lethe {

/// A regular expression of Oniguruma as one of PCRE2 that matches the same texts.
result<std::string> pcre2_from_oniguruma(std::string_view expression);

}  // namespace lethe

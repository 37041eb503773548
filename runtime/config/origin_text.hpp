#pragma once

#include <string_view>

#include "runtime/base/result.hpp"

namespace lethe {

/// Whether it is a web page's origin exactly as browsers say it: SCHEME://HOST[:PORT]. Plain http
/// is for this machine's own pages: others have no Web Crypto there.
result<void> check_origin(std::string_view text);

/// Whether that URL is plain http to another machine: what is sent there, everybody on the way
/// reads.
bool is_open_way(std::string_view url);

}  // namespace lethe

#pragma once

#include <optional>
#include <vector>

#include "runtime/base/result.hpp"

/// WWW-Authenticate and Authorization (RFC 9110, section 11): schemes with parameters.
namespace lethe {

struct auth_param {
  std::string_view name, value;  // of a quoted value what lies between the quotes
};

struct auth_scheme {
  std::string_view name;
  std::vector<auth_param> params;

  bool is(std::string_view scheme) const;  // without regard to case
  /// Nothing if it is not there; an error if it is there twice.
  result<std::optional<std::string_view>> find(std::string_view param) const;
};

/// All of a header's value, as views into it. What one scheme has instead of parameters (token68)
/// is left out.
result<std::vector<auth_scheme>> read_auth(std::string_view value);

}  // namespace lethe

#pragma once

#include "runtime/api/tool_calls.hpp"

namespace lethe {

/// [name(argument=value, ...), ...] with literals of Python as values: appends the calls, without
/// ids. False: it is something else.
bool read_pythonic(std::string_view list, std::pmr::vector<tool_call>& into);

}  // namespace lethe

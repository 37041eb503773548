#pragma once

#include <string>

#include "runtime/policy/policy.hpp"

namespace lethe::policy {

/// The table for a terminal: a line for each row, what each profile says to it.
std::string table_text();
/// All that is known of one row.
std::string row_text(const optimization& o);
/// docs/policy.md, whole.
std::string table_markdown();

}  // namespace lethe::policy

#pragma once

#include "runtime/config/check_config.hpp"

namespace lethe {

/// The cluster as a tree on standard output: hosts, engines, ranks, what each takes.
void print_cluster(const checked_config& checked);

}  // namespace lethe

#pragma once

#include "runtime/config/check_config.hpp"

namespace lethe {

/// What each rank of a file whose model is here will take, and the host's weights; refused where a
/// host or a device has less.
void plan_memory(checked_config& c);

/// A rank's need, part by part; for a device those that are computed and those that are estimated.
/// `whose`: what is said of the weights.
std::string computed_text(const rank_need& need, const char* whose = "");
std::string estimated_text(const rank_need& need);

}  // namespace lethe

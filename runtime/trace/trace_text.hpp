#pragma once

#include <string>

#include "runtime/trace/stuck.hpp"
#include "runtime/trace/trace_stats.hpp"

namespace lethe {

std::string time_text(int64_t ns);  // "12.3 µs"
std::string actor_text(const timeline& t, const actor_tag& actor, uint32_t process);

/// What is missing from the records, a line each; empty if nothing is known to be.
std::string gaps_text(const timeline& t);

std::string list_text(const timeline& t, size_t last);
/// Long runs of messages between the same two are told by their first and last unless `whole`.
std::string follow_text(const timeline& t, const traced_request& r, bool whole);
std::string slow_text(const timeline& t, slow_by by);
std::string stuck_text(const timeline& t, int64_t least_ns);
std::string diff_text(const trace_side& a, const trace_side& b);

}  // namespace lethe

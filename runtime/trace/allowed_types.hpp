#pragma once

#include <cstdint>
#include <vector>

namespace lethe {

/// What a tracer with mode `allowed` records: messages that say nothing of a single token, so
/// neither pieces of answers nor the credit for them.
std::vector<uint64_t> allowed_message_types();

}  // namespace lethe

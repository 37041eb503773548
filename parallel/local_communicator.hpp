#pragma once

#include <memory>
#include <vector>

#include "parallel/communicator.hpp"

namespace lethe {

/// A group whose ranks are threads of this process. Every rank works on everybody's memory where
/// it lies: no call copies into memory of the group, so there is nothing here to wipe.
/// `spin`: wait busily for a moment before sleeping; not with more threads than cores.
std::vector<std::unique_ptr<communicator>> make_local_group(uint32_t size, bool spin);

}  // namespace lethe

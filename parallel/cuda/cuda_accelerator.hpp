#pragma once

#include <memory>

#include "parallel/accelerator.hpp"
#include "runtime/base/result.hpp"

namespace lethe {

/// A GPU of this host, by CUDA's number, with a stream of its own. Used by the thread that opened
/// it, which uses no other GPU: CUDA's current device is a thread's.
result<std::unique_ptr<accelerator>> open_cuda(int device);

}  // namespace lethe

#pragma once

#include <memory>

#include "parallel/accelerator.hpp"
#include "runtime/base/result.hpp"

namespace lethe {

/// A GPU of this host, by CUDA's number, with a stream of its own. The calling thread uses it.
result<std::unique_ptr<accelerator>> open_cuda(int device);

}  // namespace lethe

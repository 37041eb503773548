#pragma once

#include "parallel/nccl_library.hpp"

namespace lethe::emulated {

/// What stands for NCCL between emulated devices: ranks are processes of this machine, or threads,
/// also of different network namespaces, where they share /tmp. Streams are of emulated devices: a
/// call is queued, in a graph while one is recorded, and done when the device's owner waits.
///
/// All begin as in progress; async_error goes on with what is. Sums are added in the order of
/// ranks, as float, and rounded once. A rank that dies or aborts makes async_error say
/// remote_error, one that calls something else invalid_usage; what a device is at then ends, as
/// NCCL's kernels do, once its own group is aborted, and as if it were done. Memory has no
/// windows. Messages to oneself, blocking groups and ranks outside of a split are refused.
const nccl_functions& nccl_over_sockets();

}  // namespace lethe::emulated

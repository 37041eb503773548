#pragma once

#include <vector>

#include "tests/gpu/nccl_place.hpp"

namespace lethe::testing {

/// One call of a graph that repeats it, in microseconds.
struct call_times {
  double p10, median, p90;
};
/// An all-reduce of a world of one rank, and the device's copy of as many bytes.
struct all_reduce_figure {
  size_t bytes;
  call_times all_reduce, copy;
  bool registered;  // the memory with NCCL
};

/// Looks at the answer first. `runs` of a graph of `calls`, after a warm-up.
std::vector<all_reduce_figure> bench_all_reduce(const nccl_place& p,
                                                const std::vector<size_t>& bytes, uint32_t calls,
                                                uint32_t runs);

}  // namespace lethe::testing

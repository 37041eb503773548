#pragma once

#include <vector>

#include "tests/gpu/nccl_place.hpp"

namespace lethe::testing {

/// What a world of one rank has to do on a device: says what is wrong, nothing if all is right.
struct nccl_check {
  const char* name;
  std::string (*run)(const nccl_place& p);
};
std::vector<nccl_check> nccl_checks();

/// The same, and what a check could not even begin.
std::string outcome_of(const nccl_check& c, const nccl_place& p);

}  // namespace lethe::testing

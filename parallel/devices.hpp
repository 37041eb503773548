#pragma once

#include <memory>
#include <string>
#include <vector>

#include "parallel/accelerator.hpp"
#include "parallel/nccl_environment.hpp"
#include "parallel/nccl_library.hpp"

namespace lethe {

struct device_facts {
  std::string model;  // as its maker calls it
  std::string id;     // the same for every process of the machine
  uint64_t memory = 0;
};

/// NCCL, and what the environment in which it was loaded was closed with.
struct loaded_nccl {
  nccl_functions functions;
  nccl_pins pins;
};

/// The accelerators of this host, and what their ranks talk through.
class devices {
 public:
  virtual ~devices() = default;

  /// In the order of their numbers; or why none can be used.
  virtual result<std::vector<device_facts>> all() = 0;
  virtual result<std::unique_ptr<accelerator>> open(uint32_t number) = 0;
  virtual const cuda_row& row(arithmetic how) = 0;
  /// Before this process has a second thread: what NCCL reads when it is loaded.
  virtual result<void> close_environment(const nccl_pins& pins) = 0;
  /// After close_environment.
  virtual result<loaded_nccl> nccl() = 0;
};

/// Those that this program was built for: CUDA's, or none.
std::unique_ptr<devices> devices_of_this_build();

}  // namespace lethe

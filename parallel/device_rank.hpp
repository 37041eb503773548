#pragma once

#include "parallel/devices.hpp"
#include "parallel/process_ranks.hpp"

namespace lethe {

struct device_rank_config {
  uint32_t number = 0;  // of the device
  cut ranks;
  std::chrono::milliseconds forming{60'000}, timeout{30'000};  // of the groups, as nccl_config says
  std::chrono::milliseconds patience{20'000};                  // for whoever has the device to end
  std::function<void(const error&)> stuck;                     // as nccl_config says
  arithmetic how = arithmetic::exact;
};

/// Makes ranks on a device of this host. `here` outlives them.
rank_maker on_device(devices& here, device_rank_config config);

}  // namespace lethe

#pragma once

#include "parallel/device_claim.hpp"
#include "parallel/device_weights.hpp"
#include "parallel/devices.hpp"
#include "parallel/process_ranks.hpp"

namespace lethe {

/// A device that this process has, and on it a rank's part of the weights.
struct loaded_device {
  device_claim claim;
  std::unique_ptr<accelerator> on;
  std::unique_ptr<device_weights> weights;
};

/// As long as it takes: what has to come in time comes afterwards. `patience`: for whoever has the
/// device to end.
result<loaded_device> load_device(devices& here, uint32_t number,
                                  std::chrono::milliseconds patience, const weight_source& from,
                                  const shard_part& part, const upload_options& how);

struct device_rank_config {
  cut ranks;
  std::chrono::milliseconds forming{60'000}, timeout{30'000};  // of the groups, as nccl_config says
  std::function<void(const error&)> stuck;                     // as nccl_config says
  arithmetic how = arithmetic::exact;
};

/// Makes the rank that `on` was loaded for, once. `here` outlives it.
rank_maker on_device(devices& here, loaded_device on, device_rank_config config);

}  // namespace lethe

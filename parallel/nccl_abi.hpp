#pragma once

#include <climits>
#include <cstddef>
#include <cstdint>

/// What of NCCL's binary interface we use, as its header of 2.28 has it, so that we build where
/// there is no such header. A test compares the two where there is one.
namespace lethe {

enum class nccl_status : int32_t {
  success = 0,
  unhandled_cuda_error = 1,
  system_error = 2,
  internal_error = 3,
  invalid_argument = 4,
  invalid_usage = 5,
  remote_error = 6,
  in_progress = 7,
};

using nccl_comm = struct nccl_comm_object*;
using nccl_window = struct nccl_window_object*;

/// Whoever has it may take a rank's place while a group forms.
struct nccl_id {
  char bytes[128];
};

/// ncclConfig_t. What is not set is NCCL's to choose.
struct nccl_setup {
  static constexpr int unset = INT_MIN;

  size_t size = sizeof(nccl_setup);
  unsigned magic = 0xcafebeef, version = 22800;
  int blocking = unset, cga_cluster_size = unset;
  int channels_min = unset, channels_max = unset;
  const char* net_name = nullptr;
  int split_share = unset, traffic_class = unset;
  const char* comm_name = nullptr;
  int collnet = unset, channel_policy = unset, shrink_share = unset, nvls_channels = unset;
  int channels_per_net_peer = unset, nvlink_centric = unset;
};

enum class nccl_type : int32_t { float32 = 7, bfloat16 = 9 };
enum class nccl_reduction : int32_t { sum = 0 };
inline constexpr int nccl_window_symmetric = 1;
inline constexpr size_t nccl_window_alignment = 4096;

}  // namespace lethe

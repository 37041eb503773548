#include "kernels/cuda/row.inl"
//
#include "kernels/cuda/device.cuh"

namespace lethe {

const cuda_row cuda = device::row_on<device::gpu>("cuda");

}  // namespace lethe
